import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";

interface SegmentedProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly label: string }[];
  readonly onChange: (value: T) => void;
}

/** A few choices next to each other, of which one is pressed. */
export function Segmented<T extends string>({ label, value, options, onChange }: SegmentedProps<T>): ReactNode {
  return (
    <fieldset className="inline-flex rounded-md border border-line bg-surface p-0.5">
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <button
          aria-pressed={option.value === value}
          className={classNames(
            "h-6.5 rounded px-2.5 text-xs font-medium transition-colors",
            option.value === value ? "bg-accent-soft text-accent" : "text-ink-faint hover:text-ink",
          )}
          key={option.value}
          onClick={() => onChange(option.value)}
          type="button"
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
