import path from "node:path";
import { loopback } from "./find-free-port.ts";
import { startGateway, type TestGateway } from "./start-gateway.ts";

export interface PrometheusOptions {
  /** The scrape targets: `127.0.0.1:12345`, by job. */
  readonly targets: Readonly<Record<string, string>>;
  /** Paths of files with rules. */
  readonly rules?: readonly string[];
}

export interface TestPrometheus extends TestGateway {
  /** The value of each series that a query finds now, by its labels in JSON. */
  query(expression: string): Promise<ReadonlyMap<string, number>>;
}

/** Debian's Prometheus, which looks once a second. */
export async function startPrometheus({ targets, rules = [] }: PrometheusOptions): Promise<TestPrometheus> {
  const gateway = await startGateway({
    program: "prometheus",
    configFor: () =>
      JSON.stringify({
        global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
        rule_files: rules,
        scrape_configs: Object.entries(targets).map(([job, target]) => ({
          job_name: job,
          static_configs: [{ targets: [target] }],
        })),
      }),
    argsFor: (folder, config, port) => [
      `--config.file=${config}`,
      `--web.listen-address=${loopback}:${port}`,
      `--storage.tsdb.path=${path.join(folder, "data")}`,
      "--log.level=warn",
    ],
  });

  async function query(expression: string): Promise<ReadonlyMap<string, number>> {
    const response = await fetch(`${gateway.url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { data } = (await response.json()) as QueryAnswer;
    return new Map((data?.result ?? []).map(({ metric, value }) => [JSON.stringify(metric), Number(value[1])]));
  }

  return Object.assign(gateway, { query });
}

interface QueryAnswer {
  readonly data?: {
    readonly result: readonly { readonly metric: object; readonly value: readonly [time: number, value: string] }[];
  };
}
