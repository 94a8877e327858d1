import { basename } from 'node:path';

/**
 * A vite plugin that makes the private fields of `src` visible, so that the simulation can look for what is left in them
 * (P8). A field gets the name of its file, because a class and its subclass may have private fields of one name.
 */
export function visibleFields() {
  return {
    name: 'visible fields',
    enforce: 'pre' as const,
    transform(code: string, id: string): string | undefined {
      const path = id.split('?')[0] ?? '';
      if (!/\/src\/(?:core|features)\/(?:session|cluster|registry|call|util)\//.test(path)) return undefined;
      const prefix = `field_${basename(path, '.ts').replaceAll('-', '_')}`;
      return code.replace(fieldName, (_, before: string, name: string) => `${before}${prefix}_${name}`);
    },
  };
}

/** The private name of a member where it is declared or used. */
const fieldName = /((?:^|[.(*\s]))#([a-zA-Z]\w*)/gm;
