#!/bin/sh
# Runs a test with the servers of the complete example, in network and mount namespaces of its own.
# usage: cluster_example.sh TEST_PROGRAM TEST PEERS SCRIPTS PROTO, in a folder with api.pem, api-key.pem and ca.pem
set -eu
test_program=$1 test=$2 peers=$3 scripts=$4 proto=$5

. "$scripts/example_servers.sh"
export EXAMPLE_DEVICE=$device EXAMPLE_FOLDER="$PWD"
"$test_program" --exact "$test" --ignored --nocapture
