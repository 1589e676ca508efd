#!/bin/sh
# A write tool. NOTES names the file; the call's own id is written too, as any tool can know it.
set -eu
notes=${NOTES:-notes.txt}
text=$(sed -n 's/.*"text": *"\([A-Za-z0-9 .,_-]*\)".*/\1/p')
printf '%s %s\n' "$SANDFERRY_DISPATCH_ID" "$text" >>"$notes"
printf '{"notes": %d}\n' "$(wc -l <"$notes")"
