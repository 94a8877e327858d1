import type { GatewayConfig } from '../../../config/config.ts';
import { adviceOn } from './advice.ts';
import { jsonListener } from './render-check.ts';

/**
 * Renders the result of `check --config-only`: a valid configuration, with the warnings and the advice of `check`.
 * @param isJson true for the JSON object of `check --json`, in which no server and no Redis was checked
 */
export function renderConfigOnly(config: GatewayConfig, warnings: readonly string[], isJson: boolean): string {
  const advice = [...warnings.map((text) => ({ about: 'configuration', text })), ...adviceOn(config)];
  if (isJson) {
    const { listener, text } = jsonListener();
    listener.onAdvice(advice);
    return text(true);
  }
  const notes = advice.map(({ about, text }) => `NOTE  ${about}: ${text}\n`);
  const count = config.servers.length;
  return `${notes.join('')}OK    The configuration is valid: ${count} ${count === 1 ? 'server' : 'servers'}.\n`;
}
