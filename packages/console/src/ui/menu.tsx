import { Menu as BaseMenu } from "@base-ui/react/menu";
import type { ReactElement, ReactNode } from "react";
import { classNames } from "./class-names.ts";
import { floatingClass } from "./dialog.tsx";
import { Icon, type IconName } from "./icon.tsx";

interface MenuProps {
  readonly trigger: ReactElement;
  readonly children: ReactNode;
}

export function Menu({ trigger, children }: MenuProps): ReactNode {
  return (
    <BaseMenu.Root>
      <BaseMenu.Trigger render={trigger} />
      <BaseMenu.Portal>
        <BaseMenu.Positioner align="end" className="z-50" sideOffset={6}>
          <BaseMenu.Popup className={classNames(floatingClass, "min-w-48 p-1 text-sm")}>{children}</BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  );
}

interface MenuItemProps {
  readonly icon?: IconName;
  readonly children: ReactNode;
  readonly onClick: () => void;
  readonly danger?: boolean;
}

export function MenuItem({ icon, children, onClick, danger = false }: MenuItemProps): ReactNode {
  return (
    <BaseMenu.Item
      className={classNames(
        "flex cursor-pointer items-center gap-2 rounded px-2.5 py-1.5 outline-none select-none data-highlighted:bg-accent-soft",
        danger && "text-denied",
      )}
      onClick={onClick}
    >
      {icon !== undefined && <Icon name={icon} size={15} />}
      {children}
    </BaseMenu.Item>
  );
}

export function MenuText({ children }: { readonly children: ReactNode }): ReactNode {
  return <div className="border-b border-line px-2.5 py-2 text-xs text-ink-faint">{children}</div>;
}
