import type { Input } from './server-json.ts';

/** A variable that the operator sets before the gateway starts. */
export interface NeededVariable {
  readonly name: string;
  readonly description: string;
  readonly isSecret: boolean;
  /** The value that is used if the variable is not set. */
  readonly otherwise: string | undefined;
  readonly choices: readonly string[];
}

/**
 * Turns the inputs of one entry into texts of a configuration. A value that the operator chooses becomes `${VARIABLE}`.
 * A secret of the file is never copied. Everything that gets lost becomes a note with its remedy.
 */
export class Inputs {
  /** The variables of the entry, by name. */
  readonly variables = new Map<string, NeededVariable>();
  /** What the operator has to know: one sentence each. */
  readonly notes: string[] = [];
  /** Why the entry cannot be written: one sentence each. */
  readonly obstacles: string[] = [];
  readonly #prefix: string;
  /** Two inputs with the same name get two variables, and the same input always gets the same one. */
  readonly #variableByInput = new Map<Input, string>();

  /** @param server the name of the server; the variables begin with it */
  constructor(server: string) {
    this.#prefix = variableName(server);
  }

  /**
   * The text of an input, or undefined if the operator may leave it out.
   * @param label the input in a sentence: `the header X-Key`
   * @param key the name of the input, for its variable; in `env`, the name of the variable
   * @param place where the operator can add the input: `args`
   */
  textOf(input: Input, label: string, key: string, place: 'args' | 'env' | 'headers'): string | undefined {
    const { value, isSecret } = input;
    if (value !== undefined && this.#isTemplate(input)) return this.#fill(value, input, label);
    if (value !== undefined && isSecret !== true) return this.literal(value, label);
    if (value !== undefined) this.notes.push(`${label} has a secret in the file; the secret was not copied`);
    else if (input.isRequired !== true && !input.default) {
      this.notes.push(`${label} is optional and was left out${described(input)}; to set it, add it to ${place}`);
      return undefined;
    }
    const hasOwnName = place === 'env' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(key);
    return this.#reference(input, label, hasOwnName ? key : `${this.#prefix}_${variableName(key)}`);
  }

  /** A text of the publisher. The gateway would replace a reference in it, for example with a file of this machine. */
  literal(text: string, label: string): string {
    if (text.includes('${')) this.obstacles.push(`${label} contains "\${", which the gateway would replace`);
    return text;
  }

  #isTemplate({ value = '', variables = {} }: Input): boolean {
    return [...value.matchAll(braces)].some(([, name = '']) => Object.hasOwn(variables, name));
  }

  #fill(value: string, input: Input, label: string): string {
    this.literal(value, label);
    // Names are at the odd indexes.
    const parts = value.split(braces).map((part, index) => (index % 2 === 0 ? part : this.#part(part, input, label)));
    // The publisher's parts must not become a reference together, either.
    this.literal(parts.map((part) => (part.startsWith('${') ? ' ' : part)).join(''), label);
    return parts.join('');
  }

  /** What stands in place of `{name}`. It begins with `${` only if it is a reference as a whole. */
  #part(name: string, { variables = {}, isSecret }: Input, label: string): string {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (variable === undefined) return `{${name}}`;
    const input = isSecret === true ? { ...variable, isSecret } : variable;
    if (variable.value !== undefined && input.isSecret !== true) return this.literal(variable.value, label);
    return this.#reference(input, `{${name}} in ${label}`, `${this.#prefix}_${variableName(name)}`, variable);
  }

  /** @param identity the object that the variable stands for: another one gets a name of its own */
  #reference(input: Input, label: string, wanted: string, identity: Input = input): string {
    const name = this.#variableByInput.get(identity) ?? this.#freeName(wanted);
    this.#variableByInput.set(identity, name);
    const { isSecret = false, choices = [] } = input;
    const description = input.description || label;
    const otherwise = isSecret ? undefined : input.default || undefined;
    if (isSecret && input.default) this.notes.push(`${label} has a secret as its default, which was not copied`);
    if (otherwise !== undefined && /[{}]/.test(otherwise)) {
      this.notes.push(`${label} has its default, because a reference cannot have a default with braces`);
      return this.literal(otherwise, label);
    }
    this.variables.set(name, { name, description, isSecret, otherwise, choices });
    return otherwise === undefined ? `\${${name}}` : `\${${name}:-${otherwise}}`;
  }

  #freeName(wanted: string): string {
    const taken = new Set(this.#variableByInput.values());
    let name = wanted;
    for (let count = 2; taken.has(name); count += 1) name = `${wanted}_${count}`;
    return name;
  }
}

const braces = /\{([^{}]+)\}/g;

const described = ({ description }: Input): string => (description ? ` (${description})` : '');

/** A name that a reference can have: `x-api-key` → `X_API_KEY`. */
function variableName(text: string): string {
  const name = text
    .replace(/^-+/, '')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase();
  return /^[A-Z_]/.test(name) ? name : `_${name}`;
}
