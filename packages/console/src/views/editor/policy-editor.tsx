import type { JsonObject, PolicyBody } from "@sluice/protocol/admin";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { readForm, renderPolicyYaml } from "../../policy/policy-form.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button, buttonClass } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { CodeEditor } from "../../ui/code-editor.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Page } from "../../ui/page.tsx";
import { ConflictNotice } from "./conflict-notice.tsx";
import { EffectCard } from "./effect-card.tsx";
import { PolicyFields } from "./policy-fields.tsx";
import { PublishDialog } from "./publish-dialog.tsx";
import { useValidation, type Validation } from "./use-validation.ts";

interface PolicyEditorProps {
  readonly initial: string;
  /** What is edited; absent: a new policy. */
  readonly before?: PolicyBody;
}

/** Edit with proof: form and YAML in step, errors at their lines, what changes, what it would have done, then publish. */
export function PolicyEditor({ initial, before }: PolicyEditorProps): ReactNode {
  const [text, setText] = useState(initial);
  const [expected, setExpected] = useState(before?.version ?? 0);
  const [conflict, setConflict] = useState<number>();
  const [publishing, setPublishing] = useState(false);
  const validation = useValidation(text);
  const stored = useMemo(() => (before === undefined ? "" : renderPolicyYaml(before.document)), [before]);
  const reading = readForm(text);
  const changed = before === undefined || text.trim() !== stored.trim();
  const valid = validation.answer?.valid === true && !validation.pending;
  const title = before === undefined ? "New policy" : `Edit ${before.id}`;
  return (
    <Page
      actions={
        <>
          <State changed={changed} validation={validation} />
          <Link
            className={buttonClass()}
            search={{}}
            {...(before === undefined ? { to: "/policies" } : { to: "/policies/$id", params: { id: before.id } })}
          >
            Cancel
          </Link>
          <Button
            disabled={!valid || !changed || conflict !== undefined}
            kind="primary"
            onClick={() => setPublishing(true)}
          >
            {before === undefined ? "Create…" : "Publish…"}
          </Button>
        </>
      }
      title={title}
    >
      {validation.error !== null && <ErrorNotice error={validation.error} what="The policy cannot be checked" />}
      {conflict !== undefined && before !== undefined && (
        <ConflictNotice
          id={before.id}
          onKeepMine={() => {
            setExpected(conflict);
            setConflict(undefined);
            setPublishing(true);
          }}
          onTakeTheirs={(theirs) => {
            setExpected(conflict);
            setConflict(undefined);
            setText(theirs);
          }}
          text={text}
          version={conflict}
        />
      )}
      <div className="grid items-stretch gap-4 xl:grid-cols-2">
        <Card title="Form">
          <PolicyFields fixedId={before !== undefined} setText={setText} text={text} />
        </Card>
        <Card
          aside={<ProblemCount validation={validation} />}
          className="flex flex-col [&>div]:flex [&>div]:min-h-96 [&>div]:flex-1"
          title="YAML"
        >
          <CodeEditor
            className="flex-1"
            label="Policy as YAML"
            onChange={setText}
            problems={validation.lines}
            value={text}
          />
        </Card>
      </div>
      <Meaning validation={validation} />
      {before !== undefined && changed && (
        <Card title="What changes">
          <DiffView
            after={text}
            afterLabel="This edit"
            before={stored}
            beforeLabel={`Version ${before.version}`}
            label="Stored version and this edit"
          />
        </Card>
      )}
      <EffectCard text={text} valid={valid} />
      {reading.kind === "form" && (
        <PublishDialog
          before={before}
          document={reading.document as JsonObject}
          expected={expected}
          onClose={() => setPublishing(false)}
          onConflict={setConflict}
          open={publishing}
        />
      )}
    </Page>
  );
}

function State({ changed, validation }: { readonly changed: boolean; readonly validation: Validation }): ReactNode {
  const { answer, pending } = validation;
  const text =
    pending || answer === undefined
      ? "Checking…"
      : !answer.valid
        ? "Has problems"
        : changed
          ? "Ready to publish"
          : "Unchanged";
  const tone =
    pending || answer === undefined || (answer.valid && !changed) ? "plain" : answer.valid ? "good" : "denied";
  return (
    <span aria-live="polite">
      <Badge tone={tone}>{text}</Badge>
    </span>
  );
}

function ProblemCount({ validation }: { readonly validation: Validation }): ReactNode {
  const { problems = [], warnings = [] } = validation.answer ?? {};
  return (
    <span aria-live="polite" className="flex gap-1.5">
      {problems.length > 0 && (
        <Badge tone="denied">{problems.length === 1 ? "1 problem" : `${problems.length} problems`}</Badge>
      )}
      {warnings.length > 0 && (
        <Badge tone="warning">{warnings.length === 1 ? "1 warning" : `${warnings.length} warnings`}</Badge>
      )}
    </span>
  );
}

function Meaning({ validation }: { readonly validation: Validation }): ReactNode {
  const { problems = [], warnings = [], prose = [] } = validation.answer ?? {};
  if (problems.length + warnings.length + prose.length === 0) return null;
  return (
    <Card title="What it means">
      <ul className="list-disc space-y-1 pl-5 text-sm text-ink-soft">
        {problems.map(({ line, field, message }) => (
          <li className="text-denied" key={`${line} ${field} ${message}`}>
            {line !== undefined && `Line ${line}: `}
            {field} {message}
          </li>
        ))}
        {warnings.map(({ line, field, message }) => (
          <li className="text-warning" key={`${line} ${field} ${message}`}>
            {line !== undefined && `Line ${line}: `}
            {field} {message}
          </li>
        ))}
        {prose.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </Card>
  );
}
