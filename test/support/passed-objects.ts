/** The objects whose methods a stack passes, the innermost first: `Link` of `at Link.send (/…/link.ts:145:19)`. */
const objectsIn = (stack: string): readonly string[] =>
  [...stack.matchAll(/^ {4}at (\w+)\.#?\w+ \(/gm)].map(([, object = '']) => object);

/**
 * The classes of the objects that a message passes between two of them, in its order. `to` is included, `from` is not. A stack
 * names classes, and no objects: a class that comes again is another object, unless it comes twice in a row.
 */
export function passedObjects(stack: string, from: string, to: string): readonly string[] {
  const names = objectsIn(stack).toReversed();
  const path = names.slice(names.lastIndexOf(from) + 1, names.indexOf(to) + 1);
  return path.filter((name, index) => name !== (path[index - 1] ?? from));
}
