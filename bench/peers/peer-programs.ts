/** A server that others make and that does what Sluice does. */
export type PeerName = "envoy_ratelimit" | "gubernator" | "throttlecrab";

/** A version in a registry. The first of a peer's that can be built and verified is measured. */
export type Release =
  | {
      readonly kind: "go";
      readonly module: string;
      readonly version: string;
      /** The package of its command below the module, or a file of ours that starts its server. */
      readonly main: { readonly package: string } | { readonly file: string };
    }
  | { readonly kind: "cargo"; readonly crate: string; readonly version: string };

export interface PeerProgram {
  readonly title: string;
  readonly releases: readonly Release[];
}

export const peerPrograms: Readonly<Record<PeerName, PeerProgram>> = {
  envoy_ratelimit: {
    title: "envoyproxy/ratelimit",
    releases: [
      {
        kind: "go",
        module: "github.com/envoyproxy/ratelimit",
        version: "v1.4.1-0.20260122083618-3fb702589d36",
        main: { package: "src/service_cmd" },
      },
    ],
  },
  gubernator: {
    title: "gubernator",
    // It moved from one organization to the other. The newest one is not in every checksum database.
    releases: [
      {
        kind: "go",
        module: "github.com/gubernator-io/gubernator/v2",
        version: "v2.13.0",
        main: { file: "gubernator-alone.go" },
      },
      {
        kind: "go",
        module: "github.com/mailgun/gubernator/v2",
        version: "v2.4.0",
        main: { file: "gubernator-alone.go" },
      },
    ],
  },
  throttlecrab: {
    title: "throttlecrab",
    releases: [{ kind: "cargo", crate: "throttlecrab-server", version: "0.4.40" }],
  },
};

export const peerNames = Object.keys(peerPrograms) as readonly PeerName[];

/** Servers that would belong into the table, and why they are not in it. */
export const unmeasured: Readonly<Record<string, string>> = {
  "limitador-server":
    "it is in no registry, only its library is (the crate `limitador`), and a library is not a server to compare with",
};

/** `throttlecrab-server 0.4.40` */
export function describeRelease(release: Release): string {
  return `${release.kind === "go" ? release.module : release.crate} ${release.version}`;
}
