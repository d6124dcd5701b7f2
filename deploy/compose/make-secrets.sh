#!/bin/sh
# Writes a random password for each service of compose.yaml into ./secrets, and leaves those that are there alone.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
# Containers run as different users and read the files as they are, so the folder keeps other users of this machine out.
chmod 0700 secrets
umask 0022

digest() { { sha256sum 2>/dev/null || shasum -a 256; } | cut -d ' ' -f 1; }

for name in valkey-password postgres-password grafana-password admin-token; do
  [ -s "secrets/$name" ] || od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > "secrets/$name"
done

# Valkey's users: Sluice with its password, as a digest, and a health check that may do nothing but ping.
{
  echo "user default on nopass resetkeys resetchannels -@all +ping"
  printf 'user sluice on #%s ~s:* &s:* -@all +@read +@write +@scripting +@connection +@pubsub +time +info +role\n' \
    "$(tr -d '\n' < secrets/valkey-password | digest)"
} > secrets/valkey-users
