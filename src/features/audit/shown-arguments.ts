import { type CallArguments, maxArgumentBytes } from '../../core/call/call-events.ts';
import { parseBounded } from '../../core/protocol/json.ts';
import { matchesGlob } from '../../core/util/glob.ts';
import { isObject } from '../../core/util/is-object.ts';

/** Stands for a value that an option hides. */
const hidden = '(hidden)';

/**
 * Returns the fields of an audit record for the arguments of a call: the arguments without hidden values, or their size
 * if they are too long.
 * @param hide patterns of names
 */
export function argumentFields({ bytes, text }: CallArguments, hide: readonly string[]): object {
  if (text === undefined) return { argumentBytes: bytes };
  const given = parseBounded(text, maxArgumentBytes);
  return { arguments: hide.length === 0 ? given : withoutHidden(given, hide) };
}

function withoutHidden(value: unknown, hide: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutHidden(each, hide));
  if (!isObject(value)) return value;
  const isHidden = (name: string): boolean => hide.some((pattern) => matchesGlob(name, pattern));
  // `fromEntries` defines each name, even `__proto__`, which a peer may choose.
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, isHidden(name) ? hidden : withoutHidden(each, hide)]),
  );
}
