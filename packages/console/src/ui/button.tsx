import type { ButtonHTMLAttributes, ReactNode } from "react";
import { classNames } from "./class-names.ts";
import { Icon, type IconName } from "./icon.tsx";

export type ButtonKind = "plain" | "primary" | "danger" | "quiet";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly kind?: ButtonKind;
  readonly small?: boolean;
  readonly icon?: IconName;
  /** Shows that it works, and takes no second press. */
  readonly busy?: boolean;
}

const kinds: Readonly<Record<ButtonKind, string>> = {
  plain: "border border-line bg-surface text-ink hover:border-line-strong hover:bg-sunken",
  primary: "border border-transparent bg-accent text-accent-ink hover:opacity-90",
  danger: "border border-denied bg-surface text-denied hover:bg-denied-soft",
  quiet: "border border-transparent text-ink-soft hover:bg-sunken hover:text-ink",
};

/** The look of a button, for links that act as one. */
export function buttonClass(kind: ButtonKind = "plain", small = false): string {
  return classNames(
    "inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap select-none",
    "transition-colors disabled:cursor-not-allowed disabled:opacity-50 aria-disabled:opacity-50",
    small ? "h-7 px-2 text-xs" : "h-8 px-3 text-sm",
    kinds[kind],
  );
}

export function Button({
  kind = "plain",
  small = false,
  icon,
  busy = false,
  children,
  className,
  ...rest
}: ButtonProps): ReactNode {
  return (
    <button
      type="button"
      {...rest}
      aria-busy={busy || undefined}
      className={classNames(buttonClass(kind, small), className)}
      disabled={rest.disabled === true || busy}
    >
      {icon !== undefined && <Icon name={icon} size={small ? 14 : 16} />}
      {children}
    </button>
  );
}

/** A button that is only an icon: its label is its name. */
export function IconButton({
  label,
  icon,
  ...rest
}: Omit<ButtonProps, "icon" | "children"> & { readonly label: string; readonly icon: IconName }): ReactNode {
  return (
    <button
      type="button"
      {...rest}
      aria-label={label}
      className={classNames(
        "inline-flex size-8 shrink-0 items-center justify-center rounded-md text-ink-soft transition-colors hover:bg-sunken hover:text-ink disabled:opacity-50",
        rest.className,
      )}
      title={label}
    >
      <Icon name={icon} />
    </button>
  );
}
