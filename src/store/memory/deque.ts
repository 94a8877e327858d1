/** A list that grows at its end and shrinks at its front, both in constant time, with access by index. */
export interface Deque<T> {
  readonly length: number;
  /** The element at a place counted from the oldest; undefined outside of the list. */
  at(index: number): T | undefined;
  push(element: T): void;
  /** Removes and returns the oldest element; undefined if there is none. */
  shift(): T | undefined;
}

/** Below this many empty places in front, closing the gap costs more than it frees. */
const minGap = 64;

/**
 * Makes an empty deque. `Array.shift` moves all elements on long arrays, which makes the eviction of a full log
 * quadratic; here a head index moves, and the gap is closed once it is half of the array.
 */
export function createDeque<T>(): Deque<T> {
  let elements: (T | undefined)[] = [];
  let head = 0;

  return {
    get length() {
      return elements.length - head;
    },
    at: (index) => (index < 0 ? undefined : elements[head + index]),
    push(element) {
      elements.push(element);
    },
    shift() {
      if (head === elements.length) return undefined;
      const element = elements[head];
      elements[head] = undefined; // or the array keeps an evicted event alive until the gap is closed
      head += 1;
      if (head >= minGap && head * 2 >= elements.length) {
        elements = elements.slice(head);
        head = 0;
      }
      return element;
    },
  };
}
