import { startGateway, type TestGateway } from "./start-gateway.ts";

export interface CaddyOptions {
  /** The sites of a Caddyfile, for the port that Caddy is to listen on. */
  sitesFor(port: number): string;
}

/** Debian's Caddy, without its admin endpoint. */
export function startCaddy({ sitesFor }: CaddyOptions): Promise<TestGateway> {
  return startGateway({
    program: "caddy",
    configFor: (_folder, port) => `{\n\tadmin off\n\tauto_https off\n}\n\n${sitesFor(port)}`,
    argsFor: (_folder, config) => ["run", "--adapter", "caddyfile", "--config", config],
  });
}
