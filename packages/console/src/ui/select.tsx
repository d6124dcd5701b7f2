import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";
import { inputClass, Labelled } from "./field.tsx";
import { Icon } from "./icon.tsx";

interface SelectProps<T extends string> {
  readonly label: string;
  readonly hideLabel?: boolean;
  readonly hint?: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly label: string }[];
  readonly onChange: (value: T) => void;
  readonly disabled?: boolean;
  readonly className?: string;
}

/** The browser's own list: it knows every keyboard, screen reader and phone. */
export function Select<T extends string>({
  label,
  hideLabel = false,
  hint,
  value,
  options,
  onChange,
  disabled = false,
  className,
}: SelectProps<T>): ReactNode {
  return (
    <Labelled hideLabel={hideLabel} hint={hint} label={label}>
      {(control) => (
        <span className={classNames("relative block", className)}>
          <select
            {...control}
            className={classNames(inputClass, "h-8 cursor-pointer appearance-none truncate pr-8")}
            disabled={disabled}
            onChange={(event) => onChange(event.target.value as T)}
            value={value}
          >
            {options.map((option) => (
              <option key={option.value} value={option.value}>
                {option.label}
              </option>
            ))}
          </select>
          <span className="pointer-events-none absolute inset-y-0 right-2.5 flex items-center text-ink-faint">
            <Icon name="down" size={12} />
          </span>
        </span>
      )}
    </Labelled>
  );
}
