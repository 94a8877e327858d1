import type { ServerConfig } from '../../../config/config.ts';
import { isAcceptedName, namesToShow, ViewNames } from '../../../config/servers/view-names.ts';
import { FilterRules } from '../../../core/backend/filter-rules.ts';
import type { Advice } from './advice.ts';
import type { Findings } from './examine-server.ts';

/** Advice on tools whose names model APIs refuse; undefined if all names are accepted. */
export function refusedNamesAdvice(tools: readonly string[] = []): string | undefined {
  const refused = tools.filter((name) => !isAcceptedName(name));
  if (refused.length === 0) return undefined;
  return `Model APIs refuse the names of these tools: ${listOf(refused)}. They accept 1 to 64 letters, digits, _ and -. Rename the tools with "tools", or hide them with "denyTools".`;
}

/** Advice on the names that clients of a view see. The servers of the view were examined by themselves. */
export function adviceOnView(view: ServerConfig, found: ReadonlyMap<string, Findings>): Advice[] {
  const { name: about, address } = view;
  if (address?.transport !== 'view') return [];
  const names = new ViewNames(address.members);
  const rules = new FilterRules(view.allowTools, view.denyTools, view.tools);
  const listed = address.members.flatMap(({ name }, index) =>
    ['tools' as const, 'prompts' as const].flatMap((what) =>
      (found.get(name)?.lists[what] ?? []).map((own) => ({
        what,
        isReachable: names.isReachable(index, own),
        visible: names.visible(index, own),
      })),
    ),
  );
  const leftOut = listed.filter(({ isReachable }) => !isReachable).map(({ visible }) => visible);
  // A condition on a tool's annotations cannot be checked here: it counts as not met.
  const text = Buffer.from('{}');
  const tools = listed.filter(
    ({ what, isReachable, visible }) => what === 'tools' && isReachable && rules.allows({ name: visible, text }),
  );
  const refused = refusedNamesAdvice(tools.map(({ visible }) => rules.visibleName(visible)));
  const texts = [
    leftOut.length === 0
      ? undefined
      : `The view leaves out these names, because each of them leads to another server: ${listOf(leftOut)}. Remove "unprefixed", or rename the tools in their server with "tools".`,
    refused && `${refused} A shorter server name, or another "separator", helps too.`,
  ];
  return texts.flatMap((each) => (each === undefined ? [] : [{ about, text: each }]));
}

const listOf = (names: readonly string[]): string => {
  const shown = namesToShow(names);
  const more = names.length - shown.length;
  return `${shown.map((name) => JSON.stringify(name)).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
};
