#!/bin/sh
# The complete example of the contract with its own addresses, in network and mount namespaces of its own.
# usage: complete_example.sh TOOLYARD MANIFEST PEERS SCRIPTS PROTO, in a folder with api.pem, api-key.pem and ca.pem
set -eu
toolyard=$1 manifest=$2 peers=$3 scripts=$4 proto=$5

ip link set lo up
# Not every kernel has dummy interfaces.
device=dummy0
ip link add dummy0 type dummy 2> /dev/null && ip link set dummy0 up || device=lo
for address in 10.55.0.1 10.55.0.2 10.55.0.3; do ip address add $address/24 dev $device; done
cat > hosts <<HOSTS
127.0.0.1 localhost
10.55.0.1 api.example.com
10.55.0.2 user-grpc.internal.svc.cluster.local
10.55.0.3 mcp-code.tools.svc.cluster.local
HOSTS
mount --bind hosts /etc/hosts

# Waits until a file has a text.
await() {
  count=0
  until grep -q "$2" "$1" 2>/dev/null; do
    count=$((count + 1))
    if [ $count -gt 600 ]; then echo "no '$2' in $1:"; cat "$1"; exit 1; fi
    sleep 0.1
  done
}

"$peers/python/bin/python" "$scripts/calculator_api.py" 10.55.0.1 443 > api.log 2>&1 &
"$peers/grpc/bin/python" "$scripts/grpc_shop.py" host=10.55.0.2 port=50051 "omnia=$proto" without=orders > grpc.log 2>&1 &
PORT=8080 "$peers/node_modules/.bin/mcp-server-everything" sse > mcp.log 2>&1 &
await api.log serving
await grpc.log 50051
await mcp.log 'running on port'
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
