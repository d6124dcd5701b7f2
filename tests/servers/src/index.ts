export { createCertificates, type TestCertificates } from "./create-certificates.ts";
export { createFaultyProxy, type FaultyProxy } from "./create-faulty-proxy.ts";
export { type ClusterOptions, startCluster, type TestCluster } from "./start-cluster.ts";
export { type SentinelOptions, startSentinel, type TestSentinel } from "./start-sentinel.ts";
export { type StandaloneOptions, startServer } from "./start-server.ts";
export { type Flavor, flavors, type ServerState, type TestServer } from "./test-server.ts";
