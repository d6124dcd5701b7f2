import { describe, expect, it } from "vitest";
import { parseReport } from "./parse-report.ts";

const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="2. Streams" package="generic/2" id="2" tests="2" skipped="0" failures="0" errors="1">
    <testcase package="generic/2" classname="Sends a PRIORITY frame" time="0.0026"></testcase>
    <testcase package="generic/2" classname="Sends &#34;two&#34;" time="2.0128">
      <error>GOAWAY Frame
Connection closed
Timeout</error>
    </testcase>
  </testsuite>
  <testsuite name="6.9" package="http2/6.9" id="6.9" tests="1" skipped="1" failures="0" errors="0">
    <testcase package="http2/6.9" classname="Sends SETTINGS" time="0"><skipped></skipped></testcase>
  </testsuite>
</testsuites>`;

describe("h2spec's report", () => {
  it("is read case by case, numbered within its section", () => {
    expect(parseReport(report)).toEqual([
      { id: "generic/2/1", name: "Sends a PRIORITY frame", outcome: "passed", detail: "" },
      {
        id: "generic/2/2",
        name: 'Sends "two"',
        outcome: "failed",
        detail: "expected GOAWAY Frame, or Connection closed; got Timeout",
      },
      { id: "http2/6.9/1", name: "Sends SETTINGS", outcome: "not applicable", detail: "" },
    ]);
  });
});
