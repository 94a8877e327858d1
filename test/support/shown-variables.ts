import { root } from './gateway.ts';
import type { Session } from './http-client.ts';
import { callModern, type ModernOptions } from './modern-client.ts';

/** The command of a server that returns the variables of its process. */
export const showsVariables = [process.execPath, `${root}test/fixtures/children/shows-variables.mjs`] as const;

/** The value of a variable, and the process that returned it. */
export interface Shown {
  readonly value: string;
  readonly pid: number;
}

/** The same in a result of the tool. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape, the wrong ones too
export const shownIn = (name: string, result: any): Shown => {
  const { [name]: hex, pid } = JSON.parse(result.content[0].text);
  return { value: Buffer.from(hex, 'hex').toString(), pid };
};

/** The value of a variable in the process of a session. */
export const variableOf = async (session: Session, name: string): Promise<Shown> =>
  shownIn(name, await session.callTool('show', { names: [name] }));

/** The same for the process that serves a modern request. */
export async function variableOfModern(url: string, name: string, options: ModernOptions): Promise<Shown> {
  const { json, text } = await callModern(url, 'show', { names: [name] }, options);
  if (json?.result === undefined) throw new Error(`show answered ${text}`);
  return shownIn(name, json.result);
}
