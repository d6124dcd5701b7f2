import type { ReactNode } from "react";
import { Card } from "../../ui/card.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";

const steps: readonly { readonly when: string; readonly look: string; readonly command: string }[] = [
  {
    when: "A customer is denied",
    look: "Subject, then Why: the window that decides, and until when.",
    command: "sluice denials tenant=NAME --since 1h",
  },
  {
    when: "A policy denies too much",
    look: "Roll it back, or switch it off for a while.",
    command: "sluice policy revert ID",
  },
  {
    when: "Counters are unreachable",
    look: "Counter servers above: breakers and round trips.",
    command: "sluice status",
  },
  { when: "A node is behind", look: "Nodes above: its generation, and how changes reach it.", command: "sluice nodes" },
  {
    when: "The policy store is unavailable",
    look: "Nothing to do at once: the last good policies decide.",
    command: "sluice status --json",
  },
  {
    when: "Every answer is wrong",
    look: "The kill switch, with a reason and an end.",
    command: "sluice kill-switch on open --for 15m",
  },
];

/** What to do first. docs/operations.md has the rest; the console asks no other host for it. */
export function RunbookCard(): ReactNode {
  return (
    <Card aside="docs/operations.md has each in full" flush title="Runbook">
      <table aria-label="Runbook" className="w-full text-sm">
        <tbody>
          {steps.map(({ when, look, command }) => (
            <tr className="border-t border-line" key={when}>
              <th className="w-64 px-4 py-2 text-left font-medium" scope="row">
                {when}
              </th>
              <td className="px-4 py-2 text-ink-soft">{look}</td>
              <td className="px-4 py-1 text-right whitespace-nowrap">
                <code className="font-mono text-xs">{command}</code>{" "}
                <CopyButton label={`Copy the command for: ${when}`} text={command} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
