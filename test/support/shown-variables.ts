import { root } from './gateway.ts';
import type { Session } from './http-client.ts';
import { callModern, type ModernOptions } from './modern-client.ts';

/** The command of a server that tells which variables it was started with. */
export const showsVariables = [process.execPath, `${root}test/fixtures/children/shows-variables.mjs`] as const;

/** What the server told of a variable, and by which process. */
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

/** What the process of a session has as the value of a variable. */
export const variableOf = async (session: Session, name: string): Promise<Shown> =>
  shownIn(name, await session.callTool('show', { names: [name] }));

/** The same of the process that serves a request of the modern era. */
export async function variableOfModern(url: string, name: string, options: ModernOptions): Promise<Shown> {
  const { json, text } = await callModern(url, 'show', { names: [name] }, options);
  if (json?.result === undefined) throw new Error(`show answered ${text}`);
  return shownIn(name, json.result);
}
