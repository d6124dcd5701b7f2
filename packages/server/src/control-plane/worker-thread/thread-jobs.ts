import { diffDocuments } from "../documents/diff-documents.ts";
import { planImport } from "../documents/plan-import.ts";
import { inspectDocument } from "../documents/read-documents.ts";
import { readImport } from "../documents/read-import.ts";
import { placeProblems, readYaml } from "../documents/read-yaml.ts";
import { renderConfiguration } from "../documents/render-configuration.ts";

/** The jobs that the other thread can run: functions of plain data, which is copied there and back. */
export interface ThreadJobs {
  readonly readYaml: typeof readYaml;
  readonly placeProblems: typeof placeProblems;
  readonly readImport: typeof readImport;
  readonly planImport: typeof planImport;
  readonly inspectDocument: typeof inspectDocument;
  readonly diffDocuments: (
    input: Readonly<Record<"before" | "after", Parameters<typeof diffDocuments>[0]>>,
  ) => ReturnType<typeof diffDocuments>;
  readonly renderConfiguration: (input: {
    readonly rows: Parameters<typeof renderConfiguration>[0];
    readonly generation: number;
    readonly nowMs: number;
  }) => string;
}

export type ThreadInput<Name extends keyof ThreadJobs> = Parameters<ThreadJobs[Name]>[0];
export type ThreadResult<Name extends keyof ThreadJobs> = ReturnType<ThreadJobs[Name]>;

export const threadJobs: ThreadJobs = {
  readYaml,
  placeProblems,
  readImport,
  planImport,
  inspectDocument,
  diffDocuments: ({ before, after }) => diffDocuments(before, after),
  renderConfiguration: ({ rows, generation, nowMs }) => renderConfiguration(rows, generation, nowMs),
};
