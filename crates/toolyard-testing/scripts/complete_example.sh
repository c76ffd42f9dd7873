#!/bin/sh
# The complete example of the contract with its own addresses, in network and mount namespaces of its own.
# usage: complete_example.sh TOOLYARD MANIFEST PEERS SCRIPTS PROTO, in a folder with api.pem, api-key.pem and ca.pem
set -eu
toolyard=$1 manifest=$2 peers=$3 scripts=$4 proto=$5

. "$scripts/example_servers.sh"
export SSL_CERT_FILE="$PWD/ca.pem"
"$toolyard" serve -f "$manifest" --listen 127.0.0.1:8099 > gateway.log 2>&1 &
await gateway.log 'serving MCP'
export TOOLYARD_URL=http://127.0.0.1:8099/mcp
"$toolyard" doctor --wait > doctor.log 2>&1 || { cat doctor.log gateway.log; exit 1; }

# Runs a command, and prints it with its output.
show() {
  echo "\$ toolyard $*"
  "$toolyard" "$@" 2>&1
}
grep 'handlers ready' doctor.log
show call calculate expression=1+2
show call get_user user_id=7
show call echo message=hello
show call searchProducts query=chair
show call getProductDetails id=9
