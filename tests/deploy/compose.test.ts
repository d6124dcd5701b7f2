import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";

import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { parseSettings } from "@sluice/server";
import { startGateway, startNginx, startPostgres, startServer } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../repository/source-tree.ts";
import { startSluice } from "../restart/start-sluice.ts";
import {
  type ComposeService,
  composeFolder,
  findOutside,
  parseCompose,
  readCompose,
  readDeployed,
} from "./compose-file.ts";

const run = promisify(execFile);
const compose = readCompose();
const services = Object.entries(compose.services);
const { valkey, postgres, prometheus, grafana } = compose.services as Record<string, ComposeService>;
const sluices = services.filter(([name]) => name.startsWith("sluice-"));

let folder: string;
beforeAll(() => {
  // A copy, so that the script writes no secrets into this tree.
  folder = mkdtempSync(path.join(tmpdir(), "sluice-compose-"));
  copyFileSync(path.join(composeFolder, "make-secrets.sh"), path.join(folder, "make-secrets.sh"));
  execFileSync("sh", [path.join(folder, "make-secrets.sh")]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const readSecret = (name: string): string => readFileSync(path.join(folder, "secrets", name), "utf8");

describe("the Compose file", () => {
  it("has the keys that Compose knows, and a mistake would be found", () => {
    const source = readDeployed("compose.yaml");
    for (const [right, wrong] of [
      ["stop_grace_period: 45s", "stop_grace_period: 45"],
      ["  read_only: true", "  readonly: true"],
      ["condition: service_healthy", "condition: healthy"],
      ["internal: true", "external: true"],
    ] as const)
      expect(() => parseCompose(source.replace(right, wrong)), wrong).toThrow("compose.yaml");
  });

  it("names only services, networks, volumes, secrets and files that there are", () => {
    for (const [name, service] of services) {
      const { networks = [], secrets = [], depends_on = {}, volumes = [], build } = service;
      for (const network of networks) expect(compose.networks, name).toHaveProperty(network);
      for (const secret of secrets) expect(compose.secrets, name).toHaveProperty(secret);
      for (const other of Object.keys(depends_on)) expect(compose.services, name).toHaveProperty(other);
      for (const [source = ""] of volumes.map((one) => one.split(":")))
        if (source.startsWith(".")) expect(existsSync(path.resolve(composeFolder, source)), source).toBe(true);
        else expect(compose.volumes, name).toHaveProperty(source);
      if (build !== undefined)
        expect(existsSync(path.resolve(composeFolder, build.context, build.dockerfile))).toBe(true);
    }
    const used = services.flatMap(([, { secrets = [] }]) => secrets);
    expect(new Set(used)).toEqual(new Set(Object.keys(compose.secrets)));
    expect(sluices).toHaveLength(2);
  });

  it("starts what waits for health after something that has a health check", () => {
    const image = readFileSync(path.join(repositoryRoot, "deploy/image/Containerfile"), "utf8");
    expect(image).toContain("\nHEALTHCHECK ");
    for (const [name, { depends_on = {} }] of services)
      for (const [other, { condition }] of Object.entries(depends_on)) {
        const { healthcheck, build } = compose.services[other]!;
        if (condition === "service_healthy") expect(healthcheck ?? build, `${name} waits for ${other}`).toBeDefined();
      }
  });

  it("keeps every secret in a file that its script writes once, in a folder for no one else", () => {
    const written = readdirSync(path.join(folder, "secrets"));
    expect(written.sort()).toEqual(
      Object.values(compose.secrets)
        .map(({ file }) => path.basename(file))
        .sort(),
    );
    expect(statSync(path.join(folder, "secrets")).mode & 0o777).toBe(0o700);
    const before = written.map(readSecret);
    expect(new Set(before).size).toBe(written.length);
    execFileSync("sh", [path.join(folder, "make-secrets.sh")]);
    expect(written.map(readSecret)).toEqual(before);
    expect(readSecret("valkey-users")).not.toContain(readSecret("valkey-password"));
    for (const [name, { environment = {} }] of services)
      for (const [variable, value] of Object.entries(environment))
        if (/PASSWORD|TOKEN|SECRET|_KEY/.test(variable))
          expect(value, `${name} ${variable}`).toMatch(/^\/run\/secrets\//);
        else expect(value, `${name} ${variable}`).not.toMatch(/:\/\/[^/]*:[^/]*@/);
    for (const service of Object.values(compose.services))
      for (const file of JSON.stringify(service).match(/\/run\/secrets\/[\w-]+/g) ?? [])
        expect(existsSync(findOutside(folder, service, file)), file).toBe(true);
    expect(readFileSync(path.join(repositoryRoot, ".gitignore"), "utf8")).toContain("deploy/compose/secrets/\n");
  });

  it("configures servers without a warning, and gives them time to drain", () => {
    for (const [name, { environment = {}, stop_grace_period: grace = "" }] of sluices) {
      // The image sets these.
      const reading = parseSettings({ SLUICE_HOST: "0.0.0.0", SLUICE_LOG_FORMAT: "json", ...environment });
      expect(reading).toMatchObject({ kind: "settings", warnings: [], settings: { nodeName: name } });
      if (reading.kind === "settings")
        expect(Number.parseInt(grace, 10)).toBeGreaterThan(reading.settings.drainMs / 1_000 + 22);
    }
    const { POSTGRES_USER: user, POSTGRES_DB: database, ...rest } = postgres!.environment!;
    expect(Object.keys(rest)).toEqual(["POSTGRES_PASSWORD_FILE"]);
    for (const [, { environment }] of sluices)
      expect(environment!.SLUICE_STORE_URL).toBe(`postgres://${user}@postgres:5432/${database}`);
    expect(postgres!.healthcheck!.test).toEqual(expect.arrayContaining([`--username=${user}`, `--dbname=${database}`]));
  });

  it("leads gateways, Prometheus and Grafana to ports that services listen on", () => {
    const ports: Record<string, readonly number[]> = {
      ...Object.fromEntries(sluices.map(([name]) => [name, [8080, 8081, 8090]])),
      nginx: [8000, 3000],
      envoy: [10_000],
      prometheus: [9090],
      grafana: [3000],
    };
    const addresses = [
      ...readDeployed("nginx.conf").matchAll(/^ {4}server ([\w-]+):(\d+);/gm),
      ...readDeployed("envoy.yaml").matchAll(/address: ([a-z][\w-]*), port_value: (\d+)/g),
      ...readDeployed("prometheus.yaml").matchAll(/\b(sluice-\d):(\d+)/g),
      ...readDeployed("grafana/datasources.yaml").matchAll(/http:\/\/([\w-]+):(\d+)/g),
    ];
    expect(addresses).toHaveLength(8);
    for (const [, host = "", port] of addresses) expect(ports[host], host).toContain(Number(port));
    for (const [name, { ports: published = [] }] of services)
      for (const port of published) expect(ports[name], name).toContain(Number(port.split(":")[2]));
    const envoy = parse(readDeployed("envoy.yaml"));
    const clusters = envoy.static_resources.clusters.map((cluster: { name: string }) => cluster.name);
    for (const [, cluster] of readDeployed("envoy.yaml").matchAll(/\b(?:cluster|cluster_name): (\w+)/g))
      expect(clusters).toContain(cluster);
    const [, domain] = /^ +domain: (\w+)$/m.exec(readDeployed("envoy.yaml"))!;
    expect(parse(readDeployed("policies/shop.yaml")).domain).toBe(domain);
  });

  it("has the server block of the example for nginx", () => {
    const example = readFileSync(path.join(repositoryRoot, "examples/gateways/nginx.conf"), "utf8");
    const blockOf = (text: string): string => text.slice(text.indexOf("\nserver {")).replace(/listen [\d.:]+;/, "");
    expect(blockOf(readDeployed("nginx.conf"))).toBe(blockOf(example));
  });

  it("provisions Grafana with the dashboards, which find the Prometheus there", () => {
    const provider = parse(readDeployed("grafana/dashboards.yaml"));
    expect(provider).toEqual({
      apiVersion: 1,
      providers: [
        {
          ...{ name: "sluice", folder: "Sluice", type: "file", disableDeletion: true, allowUiUpdates: false },
          options: { path: expect.any(String) },
        },
      ],
    });
    const dashboards = findOutside(folder, grafana!, provider.providers[0].options.path);
    expect(readdirSync(dashboards).length).toBe(6);
    const { apiVersion, datasources } = parse(readDeployed("grafana/datasources.yaml"));
    const known = ["name", "uid", "type", "access", "url", "isDefault", "editable", "jsonData"];
    expect([apiVersion, Object.keys(datasources[0])]).toEqual([1, known]);
    for (const name of readdirSync(dashboards)) {
      const { templating } = JSON.parse(readFileSync(path.join(dashboards, name), "utf8"));
      expect(templating.list[0]).toMatchObject({ type: "datasource", query: datasources[0].type });
    }
    for (const variable of Object.keys(grafana!.environment!))
      expect(variable).toMatch(/^GF_[A-Z]+_[A-Z_]+?(__FILE)?$/);
    for (const place of ["datasources", "dashboards"])
      expect(grafana!.volumes!.join()).toContain(`:/etc/grafana/provisioning/${place}/sluice.yaml:ro`);
  });

  it("gives Prometheus a configuration that promtool accepts", async () => {
    const inside = prometheus!.volumes!.map((one) => one.split(":")[1]!).filter((one) => one.endsWith(".yaml"));
    const copies = path.join(folder, "prometheus");
    mkdirSync(copies);
    for (const file of inside)
      copyFileSync(findOutside(folder, prometheus!, file), path.join(copies, path.basename(file)));
    const { stdout } = await run("promtool", ["check", "config", path.join(copies, "prometheus.yaml")]);
    expect(stdout).toMatch(/SUCCESS: \d+ rules found/);
  });
});

describe("the programs of the Compose file", () => {
  const closing: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
  }, 60_000);

  /** What a service is given, with files and addresses as they are outside of containers. */
  function outside(
    name: string,
    service: ComposeService,
    addresses: Readonly<Record<string, string>>,
  ): Record<string, string> {
    const entries = Object.entries(service.environment ?? {}).map(([name, given]) => {
      let value = given;
      for (const [from, to] of Object.entries(addresses)) value = value.replace(from, to);
      return [
        name,
        value.startsWith("/run/secrets/") || value.startsWith("/etc/") ? findOutside(folder, service, value) : value,
      ];
    });
    return { ...Object.fromEntries(entries), SLUICE_POLICY_SNAPSHOT: path.join(folder, `${name}.json`) };
  }

  it("serve together: checks through nginx, Envoy's limits, the control plane and Prometheus", async () => {
    const [program, ...args] = valkey!.command!;
    expect(program).toBe("valkey-server");
    const options = args.map((arg) => (arg.startsWith("/run/") ? findOutside(folder, valkey!, arg) : arg));
    const [counters, database] = await Promise.all([startServer({ flavor: "valkey", args: options }), startPostgres()]);
    closing.push(
      () => counters.close(),
      () => database.close(),
    );
    expect(await counters.command("PING")).toBe("PONG");
    await expect(counters.command("GET", "s:x")).rejects.toThrow("NOPERM");
    await database.psql("create database sluice");
    await database.psql(`alter user sluice password '${readSecret("postgres-password")}'`);
    const addresses = { "valkey:6379": `127.0.0.1:${counters.port}`, "postgres:5432": `127.0.0.1:${database.port}` };
    const started = await Promise.all(
      sluices.map(async ([name, service]) => {
        const sluice = await startSluice({ ...outside(name, service, addresses), SLUICE_DRAIN: "0s" });
        closing.push(() => sluice.kill());
        return sluice;
      }),
    );
    for (const { http } of started) await expect.poll(() => isReady(http), { timeout: 30_000 }).toBe(true);

    const [first, second] = started.map(({ http }) => new URL(http).host);
    const nginx = await startNginx({
      httpFor: (port) =>
        (readDeployed("nginx.conf") + readDeployed("app.conf"))
          .replace("sluice-1:8080", first!)
          .replace("sluice-2:8080", second!)
          .replace("listen 8000;", `listen 127.0.0.1:${port};`)
          .replace("listen 3000;", `listen unix:${path.join(folder, "app.sock")};`)
          .replace("server 127.0.0.1:3000;", `server unix:${path.join(folder, "app.sock")};`),
    });
    closing.push(() => nginx.close());
    const signIn = async (): Promise<number> => (await fetch(`${nginx.url}/login`, { method: "POST" })).status;
    const statuses: number[] = [];
    for (let times = 0; times < 6; times++) statuses.push(await signIn());
    // Five a minute, by the policy that the store was filled with, whichever of the two servers answers.
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);

    const body = { domain: "shop", descriptors: [{ entries: [{ key: "remote_address", value: "192.0.2.1" }] }] };
    const limited = await fetch(`${started[0]!.http}/json`, { method: "POST", body: JSON.stringify(body) });
    expect(await limited.json()).toMatchObject({ overallCode: "OK", statuses: [{ limitRemaining: 59 }] });

    const nodes = await fetch(`${started[1]!.admin}/api/v1/nodes`, {
      headers: { authorization: `Bearer ${readSecret("admin-token")}` },
    });
    const found = (await nodes.json()) as { nodes: { name: string }[] };
    expect(found.nodes.map(({ name }) => name).sort()).toEqual(sluices.map(([name]) => name));

    await scrape([first!, second!]);
  }, 120_000);

  const isReady = (http: string): Promise<boolean> =>
    fetch(`${http}/readyz?strict`).then(
      ({ ok }) => ok,
      () => false,
    );

  async function scrape(targets: readonly string[]): Promise<void> {
    const monitor = await startGateway({
      program: "prometheus",
      configFor: (place) => {
        copyFileSync(findOutside(folder, prometheus!, "/etc/prometheus/alerts.yaml"), path.join(place, "alerts.yaml"));
        const config = readDeployed("prometheus.yaml").replaceAll("15s", "1s");
        return config.replace("sluice-1:8080", targets[0]!).replace("sluice-2:8080", targets[1]!);
      },
      argsFor: (place, config, port) => [
        ...prometheus!.command!.map((arg) =>
          arg.replace("/etc/prometheus/prometheus.yaml", config).replace("=/prometheus", `=${place}/data`),
        ),
        `--web.listen-address=127.0.0.1:${port}`,
      ],
    });
    closing.push(() => monitor.close());
    const query = `${monitor.url}/api/v1/query?query=${encodeURIComponent('sum(up{job="sluice"})')}`;
    const countUp = async (): Promise<string> => {
      const { data } = (await (await fetch(query)).json()) as { data: { result: { value: [number, string] }[] } };
      return data.result[0]?.value[1] ?? "0";
    };
    await expect.poll(countUp, { timeout: 30_000 }).toBe("2");
  }
});
