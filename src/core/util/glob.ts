/**
 * True if a text matches a pattern in which `*` stands for any characters, also none, and everything else for itself.
 * The time is at most proportional to the length of the text times the length of the pattern.
 */
export function matchesGlob(text: string, pattern: string): boolean {
  let at = 0;
  let p = 0;
  /** The index behind the last `*`, and the end of the text that this `*` matches in the current attempt. */
  let behindStar = -1;
  let starEnd = 0;
  while (at < text.length) {
    if (pattern[p] === '*') {
      behindStar = ++p;
      if (p === pattern.length) return true;
      starEnd = at;
    } else if (pattern[p] === text[at]) {
      p += 1;
      at += 1;
    } else if (behindStar >= 0) {
      p = behindStar;
      at = ++starEnd;
    } else return false;
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}
