import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { sessionQuery, signOut } from "../session/session.ts";
import { useSession } from "../session/use-session.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Menu, MenuItem, MenuText } from "../ui/menu.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { chooseTheme, themeChoices, useTheme } from "../ui/theme.ts";
import { showFailed } from "../ui/toast.tsx";

const themeLabels = { system: "System theme", light: "Light theme", dark: "Dark theme" } as const;
const themeIcons = { system: "system", light: "sun", dark: "moon" } as const;

export function AccountMenu(): ReactNode {
  const session = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { choice } = useTheme();
  if (session === undefined || session === null) return null;
  const leave = async () => {
    try {
      await signOut();
    } catch (error) {
      return showFailed("Signing out failed", error);
    }
    // First, so that the next to sign in begins at the overview: a session that is missing leads back to its view.
    await navigate({ to: "/sign-in", search: {} });
    queries.clear();
    queries.setQueryData(sessionQuery.queryKey, null);
  };
  return (
    <Menu
      trigger={
        <Button aria-label={`Account ${session.name}`} kind="quiet">
          <Icon name="subject" />
          <span className="max-w-40 truncate">{session.name}</span>
          <Icon name="down" size={12} />
        </Button>
      }
    >
      <MenuText>
        Signed in as <strong className="text-ink">{session.name}</strong>
        <br />
        Role {session.role}
        {session.team !== undefined && `, team ${session.team}`}
        {session.expires_ms !== undefined && (
          <>
            <br />
            The token expires <RelativeTime ms={session.expires_ms} />
          </>
        )}
      </MenuText>
      {themeChoices.map((theme) => (
        <MenuItem icon={theme === choice ? "check" : themeIcons[theme]} key={theme} onClick={() => chooseTheme(theme)}>
          {themeLabels[theme]}
        </MenuItem>
      ))}
      <MenuItem icon="leave" onClick={() => void leave()}>
        Sign out
      </MenuItem>
    </Menu>
  );
}
