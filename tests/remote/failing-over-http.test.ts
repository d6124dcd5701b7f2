import { describe } from "vitest";
import { describeFailing } from "./failing-contract.ts";

describe("over http", () => describeFailing("http"));
