import { type ReactNode, useState } from "react";
import {
  addLimit,
  type FieldPath,
  type LimitForm,
  type PolicyForm,
  readForm,
  removeLimit,
  splitList,
  writeField,
} from "../../policy/policy-form.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { TextField } from "../../ui/field.tsx";
import { Select } from "../../ui/select.tsx";

interface PolicyFieldsProps {
  readonly text: string;
  readonly setText: (text: string) => void;
  /** The id of a stored policy cannot change. */
  readonly fixedId: boolean;
}

const algorithms = [
  { value: "", label: "Usual (GCRA)" },
  { value: "gcra", label: "GCRA" },
  { value: "token_bucket", label: "Token bucket" },
  { value: "leaky_bucket", label: "Leaky bucket" },
  { value: "fixed_window", label: "Fixed window" },
  { value: "sliding_window", label: "Sliding window" },
  { value: "sliding_log", label: "Sliding log" },
] as const;

/** The common fields as a form. Every change goes into the YAML, which has everything else. */
export function PolicyFields({ text, setText, fixedId }: PolicyFieldsProps): ReactNode {
  const reading = readForm(text);
  if (reading.kind === "unreadable")
    return (
      <p className="rounded-md border border-line bg-sunken px-3 py-2 text-sm text-ink-soft" role="status">
        The form comes back when the YAML can be read: {reading.why}
      </p>
    );
  const { form } = reading;
  const set = (path: FieldPath, value: unknown) => setText(writeField(text, path, value));
  return (
    <div className="flex flex-col gap-4">
      <General fixedId={fixedId} form={form} set={set} />
      <fieldset className="flex flex-col gap-3">
        <legend className="pb-2 text-sm font-semibold">Limits</legend>
        {form.limits.map((limit, at) => (
          <LimitFields
            at={at}
            // biome-ignore lint/suspicious/noArrayIndexKey: a limit is known by its place.
            key={at}
            limit={limit}
            onRemove={() => setText(removeLimit(text, at))}
            set={set}
          />
        ))}
        <Button className="self-start" icon="plus" onClick={() => setText(addLimit(text))} small>
          Add a limit
        </Button>
      </fieldset>
    </div>
  );
}

interface GeneralProps {
  readonly form: PolicyForm;
  readonly set: (path: FieldPath, value: unknown) => void;
  readonly fixedId: boolean;
}

function General({ form, set, fixedId }: GeneralProps): ReactNode {
  const text = (path: FieldPath) => (event: { target: { value: string } }) => set(path, event.target.value);
  return (
    <>
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField
          disabled={fixedId}
          hint={fixedId ? "Counters and history are known by it." : "Letters, digits and . _ : / @ -"}
          label="Id"
          onChange={text(["id"])}
          value={form.id}
        />
        <TextField hint="The team to ask" label="Owner" onChange={text(["owner"])} value={form.owner} />
      </div>
      <TextField label="Description" onChange={text(["description"])} value={form.description} />
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField
          className="font-mono"
          hint="* is one segment, ** the rest; empty: any"
          label="Endpoint"
          onChange={text(["match", "endpoint"])}
          placeholder="/v1/orders/**"
          value={form.endpoint}
        />
        <ListField
          hint="With commas; empty: any"
          label="Methods"
          onList={(list) => set(["match", "method"], list)}
          value={form.methods}
        />
      </div>
      <div className="grid gap-3 sm:grid-cols-2">
        <Select
          hint="Shadow decides and reports, and denies nothing"
          label="Mode"
          onChange={(mode) => set(["mode"], mode === "shadow" ? mode : undefined)}
          options={[
            { value: "enforce", label: "Enforce" },
            { value: "shadow", label: "Shadow" },
          ]}
          value={form.mode}
        />
        <Select
          hint="What answers while counters are unavailable"
          label="On failure"
          onChange={(value) => set(["on_failure"], value)}
          options={[
            { value: "", label: "Not chosen (open)" },
            { value: "open", label: "Open: allow" },
            { value: "closed", label: "Closed: deny" },
            { value: "local", label: "Local: count on each node" },
          ]}
          value={form.onFailure}
        />
      </div>
    </>
  );
}

interface LimitFieldsProps {
  readonly limit: LimitForm;
  readonly at: number;
  readonly set: (path: FieldPath, value: unknown) => void;
  readonly onRemove: () => void;
}

function LimitFields({ limit, at, set, onRemove }: LimitFieldsProps): ReactNode {
  return (
    <fieldset
      aria-label={`Limit ${at + 1}`}
      className="grid items-start gap-3 rounded-md border border-line bg-sunken/60 p-3 sm:grid-cols-2"
    >
      <ListField
        hint="Dimensions, with commas; empty: all share one counter"
        label="Counted by"
        onList={(list) => set(["limits", at, "by"], list)}
        value={limit.by}
      />
      <TextField
        hint="A dimension, to count its different values; empty: cost is counted"
        label="Distinct values of"
        onChange={(event) => set(["limits", at, "distinct"], event.target.value)}
        value={limit.distinct}
      />
      <ListField
        disabled={limit.windows === undefined}
        hint={
          limit.windows === undefined
            ? "Written in long form: edit them in the YAML"
            : "Such as 100/s burst 200, 1000/h"
        }
        label="Windows"
        mono
        onList={(list) => set(["limits", at, "windows"], list)}
        value={limit.windows ?? ""}
      />
      <Select
        label="Algorithm"
        onChange={(value) => set(["limits", at, "algorithm"], value)}
        options={algorithms}
        value={algorithms.find(({ value }) => value === limit.algorithm)?.value ?? ""}
      />
      <div className="flex items-end gap-2">
        <div className="flex-1">
          <TextField
            label="Name"
            onChange={(event) => set(["limits", at, "name"], event.target.value)}
            placeholder="Its dimensions"
            value={limit.name}
          />
        </div>
        <IconButton icon="trash" label={`Remove limit ${at + 1}`} onClick={onRemove} />
      </div>
    </fieldset>
  );
}

interface ListFieldProps {
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  readonly onList: (list: readonly string[]) => void;
  readonly disabled?: boolean;
  readonly mono?: boolean;
}

/** A list as text. While it is typed in, a comma at the end stays; the YAML has the list. */
function ListField({ label, hint, value, onList, disabled = false, mono = false }: ListFieldProps): ReactNode {
  const [typed, setTyped] = useState<string>();
  const isSame = typed !== undefined && splitList(typed).join(", ") === value;
  return (
    <TextField
      className={mono ? "font-mono" : ""}
      disabled={disabled}
      hint={hint}
      label={label}
      onBlur={() => setTyped(undefined)}
      onChange={(event) => {
        setTyped(event.target.value);
        onList(splitList(event.target.value));
      }}
      value={isSame ? typed : value}
    />
  );
}
