import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { TextField } from "./field.tsx";

interface SubmittedFieldProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly placeholder?: string;
  /** Enter was pressed, or the field was left. Undefined: it is empty. */
  readonly onSubmit: (value: string | undefined) => void;
}

/** A filter that is applied when it is complete, and not with every letter. */
export function SubmittedField({ label, value, placeholder, onSubmit }: SubmittedFieldProps): ReactNode {
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  const submit = () => {
    const next = text.trim() === "" ? undefined : text.trim();
    if (next !== value) onSubmit(next);
  };
  return (
    <form
      className="w-44"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        submit();
      }}
    >
      <TextField
        label={label}
        onBlur={submit}
        onChange={(event) => setText(event.target.value)}
        placeholder={placeholder}
        value={text}
      />
    </form>
  );
}
