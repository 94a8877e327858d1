/**
 * True if a text is of a pattern in which `*` stands for any characters, also none, and everything else for itself. Takes
 * time in proportion to the text times the pattern at most, whatever they are.
 */
export function matchesGlob(text: string, pattern: string): boolean {
  let at = 0;
  let p = 0;
  /** Behind the last `*`, and where what it stands for ends as far as was tried. */
  let behindStar = -1;
  let starEnd = 0;
  while (at < text.length) {
    if (pattern[p] === '*') {
      behindStar = ++p;
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
