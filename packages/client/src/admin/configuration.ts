import type { ImportChangeBody, ImportPlanBody, PolicyFilesBody } from "@sluice/protocol/admin";
import type { AdminRequests, CallOptions, OverwriteOptions } from "./admin-requests.ts";

/** The text of a policy file; or several files, each with the name that problems are reported under. */
export type PolicyFiles = string | PolicyFilesBody["files"];

/** What the files do not name: `merge` (the default) keeps it, `replace` deletes it. */
export type ImportMode = "merge" | "replace";

/** How policy files are imported. */
export interface ImportOptions extends OverwriteOptions {
  readonly mode?: ImportMode | undefined;
}

/** All policies and subjects together. */
export class AdminConfiguration {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** As a policy file in YAML, for Git. */
  export(options?: CallOptions): Promise<string> {
    return this.#requests.askText("export", "application/yaml", options);
  }

  /**
   * What an import would create, change and delete, with the difference, and every problem in its place. Needs no more than the role
   * viewer, and says nothing about whether you may import.
   */
  plan(
    files: PolicyFiles,
    { mode, ...options }: CallOptions & { readonly mode?: ImportMode | undefined } = {},
  ): Promise<ImportPlanBody> {
    return this.#requests.ask("POST", "import/plan", { query: { mode }, ...renderFiles(files), options });
  }

  /**
   * Imports policy files, whole or not at all. `expected` is the generation that you saw in a plan or a dry run; without one,
   * nothing that is there is changed or deleted.
   */
  import(files: PolicyFiles, { mode, ...options }: ImportOptions = {}): Promise<ImportChangeBody> {
    return this.#requests.ask("POST", "import", { query: { mode }, ...renderFiles(files), options });
  }
}

function renderFiles(files: PolicyFiles) {
  if (typeof files === "string") return { text: { type: "application/yaml", content: files } };
  return { body: { files } satisfies PolicyFilesBody };
}
