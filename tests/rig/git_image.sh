#!/bin/sh
# Build the images the Docker tests need, from Debian packages, without a registry:
#   IMAGE           a minimal Debian with git, git-lfs and certificates
#   IMAGE-busybox   a single static busybox: no git, no bash, no timeout of coreutils
# Usage: git_image.sh IMAGE [CACHE_DIR]. DOCKER_HOST names the engine. Does nothing for an image that exists.
set -eu
image=$1
cache=${2:-$(cd "$(dirname "$0")/../.." && pwd)/.cache}
suite=bookworm
mkdir -p "$cache"

exists() { docker image inspect "$1" >/dev/null 2>&1; }

# The mirror that apt uses already; nothing about it is written down here.
mirror() {
# shellcheck disable=SC2016
  apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | awk -v s="$suite" '$2 == s { print $1; exit }'
}

# Unpack beside the cache and rename: a build cut short leaves no half tarball.
build_git() {
  work=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  debootstrap --variant=minbase --include=git,git-lfs,ca-certificates "$suite" "$work/root" "$(mirror)" >"$cache/debootstrap.log" 2>&1 ||
    { tail -n 20 "$cache/debootstrap.log" >&2; exit 1; }
  rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
  tar -C "$work/root" --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* -cf "$work/git.tar" .
  mv "$work/git.tar" "$cache/git-$suite.tar"
  rm -rf "$work"
  trap - EXIT
}

build_busybox() {
  work=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && apt-get -o APT::Sandbox::User=root download busybox-static >/dev/null &&
    dpkg-deb -x busybox-static_*.deb pkg)
  mkdir -p "$work/root/bin" "$work/root/tmp" "$work/root/etc" "$work/root/root"
  cp "$(find "$work/pkg" -path "*/bin/busybox" | head -n 1)" "$work/root/bin/busybox"
  applets=$("$work/root/bin/busybox" --list)
  for applet in $applets; do
    [ "$applet" = busybox ] || ln "$work/root/bin/busybox" "$work/root/bin/$applet"
  done
  echo 'root:x:0:0:root:/root:/bin/sh' >"$work/root/etc/passwd"
  tar -C "$work/root" -cf "$work/busybox.tar" .
  mv "$work/busybox.tar" "$cache/busybox.tar"
  rm -rf "$work"
  trap - EXIT
}

import() {
  docker import --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' "$1" "$2" >/dev/null
}

if ! exists "$image"; then
  [ -f "$cache/git-$suite.tar" ] || build_git
  import "$cache/git-$suite.tar" "$image"
fi
bare=${image%%:*}-busybox
if ! exists "$bare"; then
  [ -f "$cache/busybox.tar" ] || build_busybox
  import "$cache/busybox.tar" "$bare"
fi
