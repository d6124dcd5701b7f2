// Serves one gubernator on the addresses that are its arguments. Its own command looks for other nodes, on a port of all interfaces.
package main

import (
	"context"
	"os"
	"time"

	gubernator "github.com/gubernator-io/gubernator/v2"
)

func main() {
	grpcAddress, httpAddress := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	daemon, err := gubernator.SpawnDaemon(ctx, gubernator.DaemonConfig{
		InstanceID:        "bench",
		GRPCListenAddress: grpcAddress,
		AdvertiseAddress:  grpcAddress,
		HTTPListenAddress: httpAddress,
		// Room for the keys of every measurement.
		CacheSize: 2_000_000,
	})
	if err != nil {
		panic(err)
	}
	daemon.SetPeers([]gubernator.PeerInfo{{GRPCAddress: grpcAddress, HTTPAddress: httpAddress}})
	select {}
}
