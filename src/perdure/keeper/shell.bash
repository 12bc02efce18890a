# perdure: lets the keeper know where commands begin and end, and what it takes to make this shell again.
# Written for one shell; @PLACE@ is its own folder. Builtins only: a prompt must not wait for programs.

# Descriptor 3 is this shell's line to the keeper. It goes where no program inherits it: bash has a saved standard
# descriptor closed by exec, and so a copy of one. What this shell says counts only if it was said there too.
exec 4>&2 2>&3
{ exec 59>&10; } 2>/dev/null
exec 2>&4 4>&-
[[ /dev/fd/59 -ef /dev/fd/3 ]] || exec 59>&3
exec 3>&-

# Functions of a shell that is made again came by the environment, from which bash takes definitions and no commands.
# They are written down as bash has understood them, for after the user's own start files.
builtin declare -f >| '@PLACE@/functions' 2>/dev/null

[ -f ~/.bashrc ] && . ~/.bashrc

__perdure='@PLACE@'

# What is done here between commands is no output of theirs, also under `set -x`: every call is a group without errors.

# Say a mark: to the keeper what is in it, to the terminal where it belongs (wherever a command has sent this shell's
# output since). Each has a number of its own, so a mark that was seen is worth nothing.
__perdure_mark() {
    local __perdure_text="$1;p=${SRANDOM-}${RANDOM-}${EPOCHREALTIME//[!0-9]/}"
    builtin printf '%s\n' "$__perdure_text" >&59 || :
    __perdure_say '\e]133;%s\a' "$__perdure_text"
}
__perdure_say() {
    builtin printf "$@" >/dev/tty || builtin printf "$@"
}

# A key that the keeper presses twice to have a command taken: only at an empty line of the first prompt. The first
# time puts the call there and makes the key Enter; anywhere else it changes nothing.
__perdure_key() {
    local __perdure_id= __perdure_map
    if [[ -n $READLINE_LINE || ${__perdure_more-} != 0 ]]; then
        __perdure_mark 'K;busy'
    elif IFS= builtin read -r __perdure_id <'@PLACE@/next' && [[ $__perdure_id != *[!A-Za-z0-9_-]* ]]; then
        READLINE_LINE=" . \"\$__perdure/$__perdure_id\";{ __perdure_arm;} 2>/dev/null"
        READLINE_POINT=${#READLINE_LINE}
        for __perdure_map in emacs vi-insert vi-command; do
            builtin bind -m "$__perdure_map" '"\C-^": accept-line'
        done
    fi
}

# A command of `run` is in a file that the keeper wrote; the shell is told its id and refuses one it has begun, or one
# that the keeper has taken back meanwhile.
__perdure_begin() {
    local __perdure_had=$-
    builtin set -C
    { : >'@PLACE@/begun/'$1; } 2>/dev/null
    local __perdure_failed=$?
    [[ $__perdure_had == *C* ]] || builtin set +C
    if ((__perdure_failed)); then
        __perdure_mark 'C;id=again'
        __perdure_say 'perdure: this command was begun before, or taken back, and is not begun\n'
        return 1
    fi
    __perdure_status=$2
    builtin history -s -- "$3"
    __perdure_say '\e[2m%s\e[0m\n' "$3"
}
__perdure_go() {
    __perdure_mark "C;id=$1"
    return "${__perdure_status:-0}"
}

# All that this shell is, as data: fields that each end with a null byte, nothing of it to be read as commands.
__perdure_dump() {
    builtin printf '%s\0' perdure-shell-1 directory "$PWD" options "$1" "$BASHOPTS" umask
    builtin umask
    builtin printf '\0traps\0%s\n\0exported\0' "$2"
    builtin declare -Fx
    builtin printf '\0'
    local __perdure_name
    local -a __perdure_names=()
    for __perdure_name in "${!BASH_ALIASES[@]}"; do
        builtin printf '%s\0' alias "$__perdure_name" "${BASH_ALIASES[$__perdure_name]}"
    done
    builtin mapfile -t __perdure_names <<<"$(builtin compgen -A function)"
    for __perdure_name in "${__perdure_names[@]}"; do
        builtin printf '%s\0' function "$__perdure_name"
        builtin declare -f -- "$__perdure_name"
        builtin printf '\0'
    done
    builtin mapfile -t __perdure_names <<<"$(builtin declare -p)" # also those that are declared and have no value
    for __perdure_name in "${__perdure_names[@]}"; do
        if [[ $__perdure_name =~ ^declare\ -[^\ ]+\ ([A-Za-z_][A-Za-z0-9_]*)(=|$) ]]; then
            __perdure_name=${BASH_REMATCH[1]}
            [[ $__perdure_name == __perdure* || $__perdure_name == BASH* ]] || __perdure_variable "$__perdure_name"
        fi
    done
    builtin printf 'end\0'
}
__perdure_variable() {
    builtin printf '%s\0' variable "$1"
    builtin declare -p -- "$1" # for its attributes; what it holds follows
    builtin printf '\0'
    if builtin test -R "$1"; then # a name for another: which one has just been said
        builtin printf '%s\0' 0
        return
    fi
    local -n __perdure_ref=$1
    local __perdure_at
    builtin printf '%s\0' "${#__perdure_ref[@]}"
    for __perdure_at in "${!__perdure_ref[@]}"; do
        builtin printf '%s\0' "$__perdure_at" "${__perdure_ref[$__perdure_at]}"
    done
}

__perdure_ended() {
    local __perdure_code=${1:-$?} __perdure_options=$SHELLOPTS
    __perdure_told=yes __perdure_turn=$((${__perdure_turn:-0} + 1))
    if builtin local -; then # for this function: a file of this name is made, never one that is there written to
        builtin set +eu -C
        __perdure_dump "$__perdure_options" "${2-}" >'@PLACE@/state.'$__perdure_turn
    fi 2>/dev/null
    builtin history -a 2>/dev/null
    __perdure_mark "D;$__perdure_code;s=$__perdure_turn"
}
__perdure_ready() {
    local __perdure_code=$? __perdure_keys=0
    [[ ${__perdure_told-} ]] || __perdure_ended "$__perdure_code" # somebody has put another command in its place
    __perdure_told= __perdure_more=0
    __perdure_arm
    if [[ -o emacs || -o vi ]] && builtin shopt -q promptvars && ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
        __perdure_keys=1 # there is a line editor that can be asked whether its line is empty
    fi
    __perdure_mark "A;k=$__perdure_keys"
}

# Traps are asked for outside of it: some of them a function does not have.
__perdure_ends='{ __perdure_ended "$?" "$(builtin trap -p)"; } 2>/dev/null'

# Have bash call the two above around each prompt, also after a command that has set PROMPT_COMMAND, PS0 or PS2 to
# something else; what else is in them stays. They are this shell's own: no shell inside it inherits them.
__perdure_arm() {
    local __perdure_code=$? __perdure_part __perdure_map
    local -a __perdure_others=()
    if [[ ${PROMPT_COMMAND[*]-} != *__perdure_ended*__perdure_ready* ]]; then
        for __perdure_part in "${PROMPT_COMMAND[@]}"; do
            [[ $__perdure_part == *__perdure_* ]] || __perdure_others+=("$__perdure_part")
        done
        if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
            PROMPT_COMMAND=("$__perdure_ends" "${__perdure_others[@]}" '{ __perdure_ready; } 2>/dev/null')
        else # one text, and no PS0 before 4.4: what is typed by hand is not known there, what is run is
            PROMPT_COMMAND=$__perdure_ends$'\n'"${__perdure_others[*]-}"$'\n{ __perdure_ready; } 2>/dev/null'
        fi
    fi
    PS0=${PS0-} PS2=${PS2-}
    PS0=${PS0#'$({ __perdure_mark C; } 2>/dev/null)'} PS2=${PS2#'${__perdure_no[__perdure_more=1]-}'}
    if builtin shopt -q promptvars; then # a line that goes on from another says so as its prompt is made
        PS0='$({ __perdure_mark C; } 2>/dev/null)'$PS0 PS2='${__perdure_no[__perdure_more=1]-}'$PS2
    fi
    builtin export -n PROMPT_COMMAND PS0 PS2
    for __perdure_map in emacs vi-insert vi-command; do
        builtin bind -m "$__perdure_map" -x '"\C-^": __perdure_key 2>/dev/null'
    done
    return "$__perdure_code"
}

# What the old shell was, from fields that the keeper has checked: assigned and set, never run.
__perdure_restore() {
    local __perdure_kind __perdure_name __perdure_value __perdure_rest
    while IFS= builtin read -r -d '' __perdure_kind && IFS= builtin read -r -d '' __perdure_name &&
        IFS= builtin read -r -d '' __perdure_value; do
        case $__perdure_kind in
            variable) __perdure_assign "$__perdure_name" "$__perdure_value" ;;
            alias) BASH_ALIASES[$__perdure_name]=$__perdure_value ;;
            trap) __perdure_traps+=("$__perdure_value" "$__perdure_name") ;;
            unexport) builtin export -nf "$__perdure_name" ;;
            shopt) __perdure_switch "$BASHOPTS" "$__perdure_value" 'shopt -u' 'shopt -s' ;;
            set) __perdure_switch "$SHELLOPTS" "$__perdure_value" 'set +o' 'set -o' ;;
        esac
    done
}
__perdure_switch() { # off what is on now, on what was on
    local IFS=: __perdure_option
    for __perdure_option in $1; do
        [[ $__perdure_option == history || ":$2:" == *":$__perdure_option:"* ]] || builtin "${3%% *}" "${3##* }" "$__perdure_option"
    done
    for __perdure_option in $2; do
        [[ ":$1:" == *":$__perdure_option:"* ]] || builtin "${4%% *}" "${4##* }" "$__perdure_option"
    done
}
__perdure_assign() { # its attributes, and how many values follow
    local __perdure_count __perdure_at __perdure_text __perdure_is_set=
    IFS= builtin read -r -d '' __perdure_count
    if [[ $2 != *n* ]]; then
        builtin unset -v "$1" && builtin declare "-g${2//[r=]/}" "$1" && local -n __perdure_ref=$1 && __perdure_is_set=yes
    fi
    [[ ! $__perdure_is_set || $2 != *=* ]] || __perdure_ref=() # it has no values, and is not unset
    while ((__perdure_count-- > 0)) && IFS= builtin read -r -d '' __perdure_at &&
        IFS= builtin read -r -d '' __perdure_text; do
        if [[ $2 == *n* ]]; then
            builtin declare -gn "$1=$__perdure_text"
        elif [[ $__perdure_is_set && $2 == *[aA]* ]]; then
            __perdure_ref[$__perdure_at]=$__perdure_text
        elif [[ $__perdure_is_set ]]; then
            __perdure_ref=$__perdure_text
        fi
    done
    [[ ! $__perdure_is_set || $2 != *r* ]] || builtin declare -gr "$1"
}

HISTFILE='@PLACE@/history' HISTFILESIZE=5000
case ":${HISTCONTROL-}:" in
    *:ignorespace:* | *:ignoreboth:*) ;;
    *) HISTCONTROL=${HISTCONTROL:+$HISTCONTROL:}ignorespace ;;
esac
__perdure_arm

if [[ -f '@PLACE@/restore' ]]; then
    . '@PLACE@/functions' 2>/dev/null
    __perdure_restore <'@PLACE@/restore' 2>/dev/null
    { __perdure_arm; } 2>/dev/null
    builtin history -r
    while ((${#__perdure_traps[@]})); do
        builtin trap -- "${__perdure_traps[@]:0:2}"
        __perdure_traps=("${__perdure_traps[@]:2}")
    done 2>/dev/null
fi
