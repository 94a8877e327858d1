import { isView } from '../../../config/servers/views.ts';
import type { CheckedResult, ServerCheck } from '../../../core/ops/console-hook.ts';
import type { GatewaySetup } from '../../features/gateway-features.ts';
import { notesOn } from './advice.ts';
import { check } from './check-command.ts';
import { textListener } from './render-check.ts';

/**
 * Checks one server of a gateway, as `mcp-gangway check` does: it starts another process or connection, and ends it
 * afterwards. Of a view, it checks the servers and the policy.
 * @returns undefined if there is no such server
 */
export async function checkOneServer(name: string, setup: GatewaySetup): Promise<ServerCheck | undefined> {
  const server = setup.config.servers.find((each) => each.name === name);
  if (server === undefined) return undefined;
  const members = server.address?.transport === 'view' ? server.address.members.map((member) => member.name) : [];
  const names = new Set([name, ...members]);
  const servers = setup.config.servers.filter((each) => each === server || (isView(server) && names.has(each.name)));
  const texts: string[] = [];
  const listener = textListener((text) => texts.push(text));
  const config = { ...setup.config, servers, cluster: { ...setup.config.cluster, redis: undefined } };
  const isFine = await check(
    { ...setup, config },
    notesOn({ config, warnings: [], disabled: [] }),
    // Advice on the configuration as a whole is not about this server.
    { ...listener, onAdvice: (advice) => listener.onAdvice(advice.filter(({ about }) => names.has(about))) },
    () => undefined,
  );
  return { isFine, results: texts.map(readResult) };
}

/** Reads a result that `textListener` has printed: its kind, its sentence, and the lines that belong to it. */
function readResult(text: string): CheckedResult {
  const [first = '', ...details] = text.trimEnd().split('\n');
  const [, word, sentence = first] = /^(OK|FAIL|NOTE) +(.*)$/.exec(first) ?? [];
  const kind = word === undefined ? 'summary' : (word.toLowerCase() as CheckedResult['kind']);
  return { kind, text: sentence, details: details.map((line) => line.trim()) };
}
