/** With fewer empty slots in front, closing the gap costs more than it frees. */
const minGap = 64;

/**
 * A list that grows at its end and shrinks at its front, both in constant time, with access by index. `Array.shift`
 * moves all elements of a long array, which makes the eviction of a full log quadratic. Here a head index moves, and
 * the gap is closed once it is half of the array.
 */
export class Deque<T> {
  #elements: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#elements.length - this.#head;
  }

  /** The element at an index counted from the oldest; undefined outside of the list. */
  at(index: number): T | undefined {
    return index < 0 ? undefined : this.#elements[this.#head + index];
  }

  push(element: T): void {
    this.#elements.push(element);
  }

  /** Removes and returns the oldest element; undefined if there is none. */
  shift(): T | undefined {
    const head = this.#head;
    if (head === this.#elements.length) return undefined;
    const element = this.#elements[head];
    this.#elements[head] = undefined; // or the array keeps an evicted event alive until the gap is closed
    this.#head += 1;
    if (this.#head >= minGap && this.#head * 2 >= this.#elements.length) {
      this.#elements = this.#elements.slice(this.#head);
      this.#head = 0;
    }
    return element;
  }
}
