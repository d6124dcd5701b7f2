import { existsSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { longestFiles } from "../longest-first.ts";
import { repositoryRoot } from "./source-tree.ts";

it("the list of the longest test files names each once, and none that is gone", () => {
  expect(longestFiles.filter((file) => !existsSync(path.join(repositoryRoot, file)))).toEqual([]);
  expect(new Set(longestFiles).size).toBe(longestFiles.length);
});
