# The servers of the complete example of the contract, at its addresses; a part of scripts in namespaces of their own.
# It uses $peers, $scripts and $proto, and a folder with api.pem, api-key.pem and ca.pem. $device is the device for further addresses.

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
# It would take the port on all addresses.
export BIND=10.55.0.3 NODE_OPTIONS="--require $scripts/bind_address.js"
PORT=8080 "$peers/node_modules/.bin/mcp-server-everything" sse > mcp.log 2>&1 &
unset NODE_OPTIONS
await api.log serving
await grpc.log 50051
await mcp.log 'running on port'
