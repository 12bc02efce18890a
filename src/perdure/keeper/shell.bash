# perdure: lets the keeper know where commands begin and end, and what it takes to make this shell again.
# Written for one shell; @PLACE@ and @NONCE@ are its own. Builtins only: a prompt must not wait for processes.

[ -f ~/.bashrc ] && . ~/.bashrc

__perdure='@PLACE@'

# A command of `run` is in a file that the keeper wrote; the shell is told its id and refuses one it has begun.
__perdure_begin() {
    if [[ -e '@PLACE@/begun/'$1 ]]; then
        builtin printf '\e]133;C;p=@NONCE@;id=again\aperdure: this command was begun before and is not begun again\n'
        return 1
    fi
    : >| '@PLACE@/begun/'$1 || return 1
    __perdure_status=$2
    builtin printf '\e[2m%s\e[0m\n\e]133;C;p=@NONCE@;id=%s\a' "$3" "$1"
}
__perdure_last() { return "${__perdure_status:-0}"; }

__perdure_ended() {
    local code=$?
    __perdure_turn=$((1 - ${__perdure_turn:-0}))
    {
        builtin printf '#perdure directory\n%s\0\n#perdure umask\n' "$PWD"
        builtin umask -p
        builtin printf '#perdure options\n'
        builtin shopt -p
        builtin set +o
        builtin printf '#perdure aliases\n'
        builtin alias -p
        builtin printf '#perdure traps\n'
        builtin trap -p
        builtin printf '#perdure functions\n'
        builtin declare -f
        builtin printf '#perdure exported\n'
        builtin declare -Fx
        builtin printf '#perdure variables\n'
        builtin declare -p
    } >| '@PLACE@/state.'$__perdure_turn 2>/dev/null
    builtin history -a 2>/dev/null
    builtin printf '\e]133;D;%s;p=@NONCE@;s=%s\a' "$code" "$__perdure_turn"
}
__perdure_ready() { builtin printf '\e]133;A;p=@NONCE@\a'; }

HISTFILE='@PLACE@/history' HISTFILESIZE=5000
case ":${HISTCONTROL-}:" in
    *:ignorespace:* | *:ignoreboth:*) ;;
    *) HISTCONTROL=${HISTCONTROL:+$HISTCONTROL:}ignorespace ;;
esac
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
    PROMPT_COMMAND=(__perdure_ended "${PROMPT_COMMAND[@]}" __perdure_ready)
else # one text, and no PS0 before 4.4: what is typed by hand is not known there, what is run is
    PROMPT_COMMAND=$'__perdure_ended\n'"${PROMPT_COMMAND-}"$'\n__perdure_ready'
fi
PS0=$'\e]133;C;p=@NONCE@\a'${PS0-}

if [[ -f '@PLACE@/restore' ]]; then
    . '@PLACE@/restore' 2>/dev/null
    builtin history -r
fi
