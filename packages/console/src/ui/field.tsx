import { type InputHTMLAttributes, type ReactNode, type Ref, type TextareaHTMLAttributes, useId } from "react";
import { classNames } from "./class-names.ts";
import { Icon } from "./icon.tsx";

interface LabelledProps {
  readonly label: string;
  /** What to enter, beneath the field. */
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** For screen readers alone, where the place says what it is. */
  readonly hideLabel?: boolean;
}

export const inputClass =
  "w-full rounded-md border border-line-strong/70 bg-surface px-2.5 text-sm text-ink hover:border-line-strong aria-invalid:border-denied disabled:opacity-60";

interface DescribedControl {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": true | undefined;
}

/** A label, any control, and what there is to say about it. */
export function Labelled({
  label,
  hint,
  error,
  hideLabel = false,
  children,
}: LabelledProps & { readonly children: (control: DescribedControl) => ReactNode }): ReactNode {
  const id = useId();
  const about = `${id}about`;
  const described = error !== undefined || hint !== undefined;
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label className={hideLabel ? "sr-only" : "text-sm font-medium"} htmlFor={id}>
        {label}
      </label>
      {children({
        id,
        "aria-describedby": described ? about : undefined,
        "aria-invalid": error === undefined ? undefined : true,
      })}
      {described && (
        <p className={classNames("text-xs", error === undefined ? "text-ink-faint" : "text-denied")} id={about}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps extends LabelledProps, InputHTMLAttributes<HTMLInputElement> {
  readonly inputRef?: Ref<HTMLInputElement>;
}

export function TextField({
  label,
  hint,
  error,
  hideLabel = false,
  className,
  inputRef,
  ...input
}: TextFieldProps): ReactNode {
  return (
    <Labelled error={error} hideLabel={hideLabel} hint={hint} label={label}>
      {(control) => (
        <input
          autoComplete="off"
          spellCheck={false}
          type="text"
          {...input}
          {...control}
          className={classNames(inputClass, "h-8", className)}
          ref={inputRef}
        />
      )}
    </Labelled>
  );
}

export function TextArea({
  label,
  hint,
  error,
  hideLabel = false,
  className,
  ...input
}: LabelledProps & TextareaHTMLAttributes<HTMLTextAreaElement>): ReactNode {
  return (
    <Labelled error={error} hideLabel={hideLabel} hint={hint} label={label}>
      {(control) => (
        <textarea
          rows={3}
          spellCheck={false}
          {...input}
          {...control}
          className={classNames(inputClass, "py-1.5", className)}
        />
      )}
    </Labelled>
  );
}

export function SearchField({
  label,
  className,
  ...input
}: { readonly label: string } & InputHTMLAttributes<HTMLInputElement>): ReactNode {
  return (
    <div className={classNames("relative", className)}>
      <span className="pointer-events-none absolute inset-y-0 left-2.5 flex items-center text-ink-faint">
        <Icon name="search" size={14} />
      </span>
      <input
        aria-label={label}
        autoComplete="off"
        className={classNames(inputClass, "h-8 pl-8")}
        placeholder={label}
        spellCheck={false}
        type="search"
        {...input}
      />
    </div>
  );
}

export function Checkbox({
  label,
  hint,
  ...input
}: { readonly label: ReactNode; readonly hint?: string } & InputHTMLAttributes<HTMLInputElement>): ReactNode {
  const id = useId();
  return (
    <div className="flex items-start gap-2 text-sm">
      <input {...input} className="mt-0.5 size-4 accent-(--accent)" id={id} type="checkbox" />
      <label htmlFor={id}>
        {label}
        {hint !== undefined && <span className="block text-xs text-ink-faint">{hint}</span>}
      </label>
    </div>
  );
}
