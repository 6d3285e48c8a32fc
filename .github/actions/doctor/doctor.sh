#!/usr/bin/env bash
# Unpacks the program of a release and examines a server with it; the exit code is that of the program. The steps of action.yml set
# SERVER, VERSION and ARGUMENTS. Runs with Bash 3.2, which macOS has.
set -euo pipefail

fail() {
    printf '::error title=mcp-exact::%s\n' "$1"
    exit 2
}

case "$RUNNER_OS-$RUNNER_ARCH" in
    Linux-X64) target=x86_64-unknown-linux-musl ;;
    Linux-ARM64) target=aarch64-unknown-linux-musl ;;
    macOS-X64) target=x86_64-apple-darwin ;;
    macOS-ARM64) target=aarch64-apple-darwin ;;
    # Windows on ARM runs programs for x86-64.
    Windows-*) target=x86_64-pc-windows-msvc ;;
    *) fail "there is no program for $RUNNER_OS on $RUNNER_ARCH" ;;
esac

releases="${MCP_EXACT_RELEASES:-https://github.com/mcp-exact/mcp-exact/releases}"
case "$VERSION" in
    '' | latest) url="$releases/latest/download" ;;
    *) url="$releases/download/v${VERSION#v}" ;;
esac
url="$url/mcp-exact-$target.tar.gz"
folder="$(mktemp -d)"
curl --fail --silent --show-error --location --retry 3 --output "$folder/mcp-exact.tar.gz" "$url" \
    || fail "cannot download $url; is version '$VERSION' a release?"
(cd "$folder" && tar -xzf mcp-exact.tar.gz)

# xargs splits words as a shell does, quotes included, and expands nothing.
text="$(printf '%s\n' "$ARGUMENTS" "$SERVER" | xargs -n 1 printf '%s\n')" \
    || fail "the inputs \`server\` and \`arguments\` cannot be split into words; close all quotes"
words=()
while IFS= read -r word; do words+=("$word"); done <<< "$text"

exec "$folder/mcp-exact" doctor --github "${words[@]}"
