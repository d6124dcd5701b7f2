import { diffDocuments } from "../documents/diff-documents.ts";
import { inspectDocument } from "../documents/read-documents.ts";
import { readImport } from "../documents/read-import.ts";
import { placeProblems, readYaml } from "../documents/read-yaml.ts";
import { renderConfiguration } from "../documents/render-configuration.ts";

/** What may be done in the thread beside this one: functions of plain data, which is copied there and back. */
export interface AsideJobs {
  readonly readYaml: typeof readYaml;
  readonly placeProblems: typeof placeProblems;
  readonly readImport: typeof readImport;
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

export type AsideInput<Name extends keyof AsideJobs> = Parameters<AsideJobs[Name]>[0];
export type AsideResult<Name extends keyof AsideJobs> = ReturnType<AsideJobs[Name]>;

export const asideJobs: AsideJobs = {
  readYaml,
  placeProblems,
  readImport,
  inspectDocument,
  diffDocuments: ({ before, after }) => diffDocuments(before, after),
  renderConfiguration: ({ rows, generation, nowMs }) => renderConfiguration(rows, generation, nowMs),
};
