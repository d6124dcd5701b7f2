import type { PolicyBody } from "@sluice/protocol/admin";
import { type ReactNode, useMemo } from "react";
import { renderPolicyYaml } from "../../policy/policy-form.ts";
import { Card } from "../../ui/card.tsx";
import { CodeEditor } from "../../ui/code-editor.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";

/** The policy as it is written, and what it means. */
export function DefinitionTab({
  policy,
  prose,
}: {
  readonly policy: PolicyBody;
  readonly prose: readonly string[] | undefined;
}): ReactNode {
  const yaml = useMemo(() => renderPolicyYaml(policy.document), [policy.document]);
  return (
    <div className="grid gap-4 xl:grid-cols-2">
      <Card title="What it does">
        {prose === undefined ? (
          <Skeleton className="h-24" />
        ) : (
          <ul className="list-disc space-y-1.5 pl-5 text-sm text-ink-soft">
            {prose.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        )}
      </Card>
      <Card aside={<CopyButton label="Copy the YAML" text={yaml} />} title="As written">
        <CodeEditor label={`${policy.id} as YAML`} value={yaml} />
      </Card>
    </div>
  );
}
