# perdure: lets the keeper know where commands begin and end, and what it takes to make this shell again.
# Written for one shell; @PLACE@ and @NONCE@ are its own. Builtins only: a prompt must not wait for processes.

[ -f ~/.bashrc ] && . ~/.bashrc

__perdure='@PLACE@'

# Marks go to the terminal itself, wherever a command has sent this shell's output since.
__perdure_say() {
    builtin printf "$@" >/dev/tty || builtin printf "$@"
}

# What is done here between commands is no output of theirs, also under `set -x`: every call is a group without errors.

# A command of `run` is in a file that the keeper wrote; the shell is told its id and refuses one it has begun.
__perdure_begin() {
    if [[ -e '@PLACE@/begun/'$1 ]]; then
        __perdure_say '\e]133;C;p=@NONCE@;id=again\aperdure: this command was begun before and is not begun again\n'
        return 1
    fi
    : >| '@PLACE@/begun/'$1 || return 1
    __perdure_status=$2
    builtin history -s -- "$3"
    __perdure_say '\e[2m%s\e[0m\n' "$3"
}
__perdure_go() {
    __perdure_say '\e]133;C;p=@NONCE@;id=%s\a' "$1"
    return "${__perdure_status:-0}"
}

__perdure_ended() {
    local __perdure_code=${1:-$?}
    __perdure_told=yes __perdure_turn=$((1 - ${__perdure_turn:-0}))
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
    __perdure_say '\e]133;D;%s;p=@NONCE@;s=%s\a' "$__perdure_code" "$__perdure_turn"
}
__perdure_ready() {
    local __perdure_code=$?
    [[ ${__perdure_told-} ]] || __perdure_ended "$__perdure_code" # somebody has put another command in its place
    __perdure_told=
    __perdure_arm
    __perdure_say '\e]133;A;p=@NONCE@\a'
}

# Have bash call the two above around each prompt, also after a command that has set PROMPT_COMMAND or PS0 to something
# else; what else is in them stays. They are this shell's own: no shell inside it inherits them.
__perdure_arm() {
    local code=$? part
    local -a others=()
    if [[ ${PROMPT_COMMAND[*]-} != *__perdure_ended*__perdure_ready* ]]; then
        for part in "${PROMPT_COMMAND[@]}"; do
            [[ $part == *__perdure_* ]] || others+=("$part")
        done
        if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
            PROMPT_COMMAND=('{ __perdure_ended; } 2>/dev/null' "${others[@]}" '{ __perdure_ready; } 2>/dev/null')
        else # one text, and no PS0 before 4.4: what is typed by hand is not known there, what is run is
            PROMPT_COMMAND=$'{ __perdure_ended; } 2>/dev/null\n'"${others[*]-}"$'\n{ __perdure_ready; } 2>/dev/null'
        fi
    fi
    [[ ${PS0-} == $'\e]133;C;p=@NONCE@\a'* ]] || PS0=$'\e]133;C;p=@NONCE@\a'${PS0-}
    builtin export -n PROMPT_COMMAND PS0
    return "$code"
}

HISTFILE='@PLACE@/history' HISTFILESIZE=5000
case ":${HISTCONTROL-}:" in
    *:ignorespace:* | *:ignoreboth:*) ;;
    *) HISTCONTROL=${HISTCONTROL:+$HISTCONTROL:}ignorespace ;;
esac
__perdure_arm

if [[ -f '@PLACE@/restore' ]]; then
    . '@PLACE@/restore' 2>/dev/null
    builtin history -r
fi
