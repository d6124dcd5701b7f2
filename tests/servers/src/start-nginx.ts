import path from "node:path";
import { startGateway, type TestGateway } from "./start-gateway.ts";

export interface NginxOptions {
  /** The content of `http { }`, for the port that nginx listens on. */
  httpFor(port: number): string;
}

/** Debian's nginx in one process, with all of its files in a separate folder. */
export function startNginx({ httpFor }: NginxOptions): Promise<TestGateway> {
  return startGateway({
    program: "nginx",
    configFor: (folder, port) => `
daemon off;
master_process off;
pid ${path.join(folder, "pid")};
error_log stderr warn;
events { worker_connections 256; }
http {
    access_log off;
    ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((name) => `${name}_temp_path ${path.join(folder, name)};`)
      .join("\n    ")}
${httpFor(port)}
}
`,
    // Until the configuration is read, it logs to its compiled-in path.
    argsFor: (folder, config) => ["-p", folder, "-c", config, "-e", "stderr"],
  });
}
