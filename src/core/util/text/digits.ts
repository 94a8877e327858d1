const zero = 0x30;

/**
 * Writes a non-negative integer as its decimal digits, which costs less than making a string first.
 * @returns the index behind the last digit
 */
export function writeDigits(target: Uint8Array, start: number, value: number): number {
  let length = 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) length += 1;
  const end = start + length;
  let rest = value;
  for (let at = end - 1; at >= start; at -= 1) {
    const tens = Math.floor(rest / 10);
    target[at] = zero + (rest - tens * 10);
    rest = tens;
  }
  return end;
}
