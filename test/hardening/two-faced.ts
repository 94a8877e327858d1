import { root } from '../support/gateway.ts';
import type { Message } from '../support/http-client.ts';

/** What a server writes, by the name of the attack. */
type Attacks = Readonly<Record<string, () => readonly (string | Buffer)[]>>;

const load = (name: string): Promise<unknown> => import(`${root}test/fixtures/two-faced/${name}.mjs`);

/** The attacks of the two-faced server, which runs without types; see there. */
export const { ofOthers, harmless, lethal, attacks } = (await load('attacks')) as Readonly<
  Record<'ofOthers' | 'harmless' | 'lethal' | 'attacks', Attacks>
>;

/** Its honest face. */
export const { answersTo, isModern } = (await load('answers')) as {
  answersTo(message: Message, listens: Set<unknown>): readonly object[];
  isModern(params: Message): boolean;
};
