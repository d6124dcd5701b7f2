import { readFileSync } from "node:fs";
import path from "node:path";
import { parseSettings } from "@sluice/server";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { chartCases, digestChart, listChartCases } from "../../scripts/chart-digest.mjs";
import { checkOperatorManifest } from "./operator-manifests.ts";

interface Probe {
  readonly httpGet?: { readonly path: string; readonly scheme: string };
  readonly exec?: { readonly command: readonly string[] };
  readonly periodSeconds: number;
  readonly failureThreshold?: number;
}

interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly envFrom?: readonly unknown[];
  readonly volumeMounts: readonly { readonly name: string }[];
  readonly readinessProbe?: Probe;
  readonly livenessProbe: Probe;
  readonly securityContext: Readonly<Record<string, unknown>>;
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes: readonly { readonly name: string }[];
        readonly terminationGracePeriodSeconds: number;
      };
    };
    readonly selector: Readonly<Record<string, unknown>>;
    readonly ports?: readonly { readonly name: string; readonly appProtocol?: string }[];
  };
}

function readManifests(name: string): readonly Manifest[] {
  const text = readFileSync(path.join(chartCases, `${name}.rendered.yaml`), "utf8");
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

/** The settings of the container, as the server reads them; secrets come from elsewhere. */
function readSettings({ env, envFrom }: Container) {
  const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  const secrets = envFrom === undefined ? {} : { SLUICE_STORE_URL: "postgres://db.example/sluice" };
  const reading = parseSettings({ ...secrets, ...variables });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading;
}

const central = ["smallest", "everything", "tls", "kube"];
const findPod = (name: string) => readManifests(name).find(({ kind }) => kind === "Deployment")!.spec.template;

describe("the Helm chart", () => {
  it("is as helm last rendered it; after a change run npm run chart", () => {
    expect(digestChart()).toBe(readFileSync(path.join(chartCases, "digest"), "utf8").trim());
    expect(listChartCases()).toEqual([...central, "sidecar"].sort());
  });

  it.each(central)("serves by settings that a server accepts without a warning: %s", (name) => {
    const [container] = findPod(name).spec.containers;
    expect(container!.args).toEqual(["serve"]);
    expect(readSettings(container!)).toMatchObject({ warnings: [], settings: { host: "0.0.0.0", logFormat: "json" } });
  });

  it.each(central)("gives a pod time to drain, and probes by the rules of readiness: %s", (name) => {
    const { spec } = findPod(name);
    const [container] = spec.containers;
    const { drainMs, tlsCert, tlsClientCa } = readSettings(container!).settings;
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(drainMs / 1_000 + 20);
    const { readinessProbe: ready, livenessProbe: live } = container!;
    if (tlsClientCa === undefined) {
      const scheme = tlsCert === undefined ? "HTTP" : "HTTPS";
      expect([ready!.httpGet, live.httpGet]).toMatchObject([
        { path: "/readyz", scheme },
        { path: "/livez", scheme },
      ]);
      // Load balancers look away before the server stops listening.
      if (name !== "kube") expect(ready!.periodSeconds * ready!.failureThreshold!).toBeLessThan(drainMs / 1_000);
    } else {
      expect(ready!.exec!.command).toEqual(["/usr/local/bin/sluice", "healthcheck"]);
      expect(live.exec!.command).toEqual(["/usr/local/bin/sluice", "healthcheck", "--live"]);
    }
    expect(JSON.stringify(spec)).not.toContain("strict");
  });

  it.each(central)("gives containers no privileges, and mounts only what there is: %s", (name) => {
    const { containers, volumes } = findPod(name).spec;
    const [container] = containers;
    expect(container!.securityContext).toEqual({
      ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, runAsNonRoot: true },
      ...{ runAsUser: 65_532, runAsGroup: 65_532 },
      ...{ capabilities: { drop: ["ALL"] }, seccompProfile: { type: "RuntimeDefault" } },
    });
    expect(container!.volumeMounts.map((one) => one.name).sort()).toEqual(volumes.map((one) => one.name).sort());
  });

  it("leads every selector to the pods, and Prometheus to each pod once", () => {
    const manifests = readManifests("everything");
    const { labels } = findPod("everything").metadata;
    const selectors = manifests
      .filter(({ kind }) => /^(Service|NetworkPolicy|PodDisruptionBudget)$/.test(kind))
      .map(({ spec }) => JSON.parse(JSON.stringify(spec, (key, value) => (key === "podSelector" ? undefined : value))))
      .flatMap(({ selector }) => (selector === undefined ? [] : [selector.matchLabels ?? selector]));
    expect(selectors).toHaveLength(4);
    for (const selector of selectors) expect(labels).toMatchObject(selector);
    const monitor = manifests.find(({ kind }) => kind === "ServiceMonitor")!;
    const { matchLabels } = monitor.spec.selector as { matchLabels: Record<string, string> };
    const scraped = manifests.filter(
      ({ kind, metadata }) =>
        kind === "Service" && Object.entries(matchLabels).every(([name, value]) => metadata.labels[name] === value),
    );
    expect(scraped.map(({ metadata }) => metadata.name)).toEqual(["sluice"]);
  });

  it.each(central)("gives the Prometheus operator only what it knows: %s", (name) => {
    for (const manifest of readManifests(name)) expect(() => checkOperatorManifest(manifest)).not.toThrow();
  });

  it("has both resources of the operator, in which a mistake would be found", () => {
    const manifests = readManifests("everything");
    for (const [kind, right, wrong] of [
      ["ServiceMonitor", '"interval"', '"intervall"'],
      ["ServiceMonitor", '"15s"', "15"],
      ["PrometheusRule", '"for"', '"form"'],
      ["PrometheusRule", '"1m"', '"1 minute"'],
    ] as const) {
      const source = JSON.stringify(manifests.find((one) => one.kind === kind));
      expect(source).toContain(right);
      expect(() => checkOperatorManifest(JSON.parse(source.replace(right, wrong))), wrong).toThrow(kind);
    }
  });

  it.each(central)("calls gRPC cleartext only if it is served without TLS: %s", (name) => {
    const { tlsCert } = readSettings(findPod(name).spec.containers[0]!).settings;
    const ports = readManifests(name).flatMap(({ kind, spec }) => (kind === "Service" ? (spec.ports ?? []) : []));
    const grpc = ports.filter((port) => port.name === "grpc");
    expect(grpc.length).toBeGreaterThan(0);
    for (const { appProtocol } of grpc)
      expect(appProtocol).toBe(tlsCert === undefined ? "kubernetes.io/h2c" : undefined);
  });

  it("writes a sidecar that listens on unix sockets and nowhere else", () => {
    const map = readManifests("sidecar").find(({ data }) => data?.container !== undefined)!;
    const container = parseAllDocuments(map.data!.container!)[0]!.toJS() as Container;
    const { settings, warnings } = readSettings(container);
    expect(warnings).toEqual([]);
    expect(settings).toMatchObject({ httpPort: undefined, grpcPort: undefined, adminPort: undefined });
    expect(settings.httpSocket).toBe("/run/sluice/http.sock");
    const volumes = parseAllDocuments(map.data!.volumes!)[0]!.toJS() as { name: string }[];
    expect(container.volumeMounts.map(({ name }) => name)).toEqual(volumes.map(({ name }) => name));
  });
});
