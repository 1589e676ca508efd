# shellcheck shell=sh disable=SC2016,SC2034,SC2094,SC2154
# What git cannot carry, found by one walk over the work tree: lstat of every file, no file is opened.

# omit KIND: the names on stdin are not taken. $where is the part they are in, with a slash. Mostly there are none.
omit() {
    IFS= read -r first || return 0
    { printf '%s %s%s\n' "$1" "$where" "$first" && KIND=$1 WHERE=$where awk '{ print ENVIRON["KIND"] " " ENVIRON["WHERE"] $0 }'; } >>"$own/omitted"
}

# Directories: "empty", or "unreadable" if we cannot look.
probe='
for directory; do
    if ! [ -r "$directory" ] || ! [ -x "$directory" ]; then
        printf "unreadable %s\0" "$directory" && continue
    fi
    for entry in "$directory"/* "$directory"/.[!.]* "$directory"/..?*; do
        if [ -e "$entry" ] || [ -L "$entry" ]; then continue 2; fi
    done
    printf "empty %s\0" "$directory"
done'

# Lines "kind ./name" into $own/found, nested repositories' .git among them; what lies in those is theirs. A file
# may be of several kinds: `! -name '*'` goes on to the next. No -exec stands in parentheses, where busybox loses
# its last batch.
walk() {
    find . -name .git -prune -exec printf 'git %s\0' {} + \
        -o -type p -exec printf 'fifo %s\0' {} + \
        -o -type s -exec printf 'socket %s\0' {} + \
        -o \( -type b -o -type c \) -exec printf 'device %s\0' {} + \
        -o -type d -exec sh -c "$probe" sh {} + \
        -o -type f -links +1 -exec printf 'hardlink %s\0' {} + ! -name '*' \
        -o -type f \( -perm -4000 -o -perm -2000 -o -perm -1000 \) -exec printf 'special_mode %s\0' {} + ! -name '*' \
        -o -type f -size "+${cap}c" -exec printf 'too_large %s\0' {} + | lines >"$own/walked"
    sed -n 's|^git \./\(.*\)/\.git$|\1|p' "$own/walked" >"$own/repositories"
    : >"$own/nested"
    [ ! -s "$own/repositories" ] || outside "$own/repositories" <"$own/repositories" | unignored >"$own/nested"
    sed '/^git /d; s|^\([a-z_]*\) \./|\1 |; /^[a-z_]* \.$/d' "$own/walked" >"$own/others"
    : >"$own/found"
    [ -s "$own/others" ] || return 0
    for what in unreadable fifo socket device special_mode hardlink too_large empty; do
        grep -q "^$what " "$own/others" || continue
        sed -n "s/^$what //p" "$own/others" | outside "$own/repositories" | unignored | sed "s/^/$what /" >>"$own/found"
    done
}

# The lines of stdin that git does not ignore. To check-ignore a colon at the start of a name would be magic.
unignored() {
    cat >"$own/candidates"
    [ -s "$own/candidates" ] || return 0
    sed 's|^|./|' "$own/candidates" | zeros | git check-ignore -z --stdin | lines | sed 's|^\./||' >"$own/ignored"
    minus "$own/ignored" <"$own/candidates"
}

found() { sed -n "s/^$1 //p" "$own/found"; }

# Files over the cap that are new or changed: not taken.
set_large_apart() {
    [ -s "$own/found" ] || return 0
    found too_large >"$own/large"
    [ -s "$own/large" ] || return 0
    zeros <"$own/large" | xargs -0 git --literal-pathspecs ls-files --others --modified --exclude-standard -z -- |
        lines | sort -u >"$own/names"
    omit too_large <"$own/names"
    cat -- "$own/names" >>"$own/apart"
}

# No worker would make a directory of such a name.
unnameable='tolower($0) ~ /(^|\/)\.git(\/|$)/ || length($0) > 3000'

# Attributes and kinds of files that no tree holds, and directories that hold nothing.
report_walk() {
    [ -s "$own/found" ] || return 0
    for what in unreadable fifo socket device special_mode hardlink; do found "$what" | omit "$what"; done
    found empty | minus "$own/apart" >"$own/names"
    awk "$unnameable" "$own/names" | omit empty_directory_unnameable
    awk "!($unnameable)" "$own/names" | WHERE=$where awk '{ print ENVIRON["WHERE"] $0 }' >>"$own/empty"
}

# After an add that could not take everything: what it left out, and why.
report_left() {
    [ "$partial" = yes ] || return 0
    git ls-files --others --modified --exclude-standard -z | lines | sort -u | minus "$own/apart" >"$own/left"
    while IFS= read -r name; do
        plain=$(printf '%b.' "$name")
        plain=./${plain%.}
        case $plain in
            */) continue ;;
        esac
        if [ ! -e "$plain" ] && [ ! -L "$plain" ]; then what=vanished
        elif [ ! -r "$plain" ]; then what=unreadable
        else what=refused_name
        fi
        printf '%s\n' "$name" | omit "$what"
    done <"$own/left"
}
