import { isView } from '../../../config/servers/views.ts';
import { type CheckedConfiguration, notesOn } from './advice.ts';
import { jsonListener } from './render-check.ts';

/**
 * Renders the result of `check --config-only`: a valid configuration, with the warnings and the advice of `check`.
 * @param isJson true for the JSON object of `check --json`, in which no server and no Redis was checked
 */
export function renderConfigOnly(configuration: CheckedConfiguration, isJson: boolean): string {
  const advice = notesOn(configuration);
  if (isJson) {
    const { listener, text } = jsonListener();
    listener.onAdvice(advice);
    return text(true);
  }
  const notes = advice.map(({ about, text }) => `NOTE  ${about}: ${text}\n`);
  return `${notes.join('')}OK    The configuration is valid: ${countServers(configuration)}.\n`;
}

/** Counts what the file configures: `3 servers, 2 views, 1 disabled`. */
function countServers({ config: { servers }, disabled }: CheckedConfiguration): string {
  const views = servers.filter(isView).length;
  const counted = (count: number, one: string): string => `${count} ${count === 1 ? one : `${one}s`}`;
  return [
    counted(servers.length - views, 'server'),
    ...(views > 0 ? [counted(views, 'view')] : []),
    ...(disabled.length > 0 ? [`${disabled.length} disabled`] : []),
  ].join(', ');
}
