// The LuCI view of dist/openwrt, without LuCI: reads it as LuCI does, renders it over the state in JSON on standard
// input ("null": the gateway does not run), and prints the text and the options that it shows.
"use strict";
const fs = require("node:fs");

const source = fs.readFileSync(process.argv[2], "utf8");
const output = fs.readFileSync(0, "utf8");
String.prototype.format = function (...values) {
    return this.replace(/%(\.1f|d|s)/g, (_, kind) => {
        const value = values.shift();
        return kind === ".1f" ? value.toFixed(1) : String(value);
    });
};
const text = (node) =>
    Array.isArray(node) ? node.map(text).join(" ") : typeof node === "object" ? text(node.children) : String(node);
const E = (tag, attributes, children) => ({ tag, children: children ?? attributes, firstChild: "" });

const commands = [];
const shown = {};
const poll = { add: (what, seconds) => Object.assign(poll, { what, seconds }) };
class Section {
    constructor(type) {
        this.options = shown[type] = [];
    }
    option(_kind, name) {
        this.options.push(name);
        return { value() {}, depends() {} };
    }
}
class FormMap {
    constructor(config) {
        shown.config = config;
    }
    section(_kind, type) {
        return new Section(type);
    }
    render() {
        return Promise.resolve(E("form", []));
    }
}
const modules = {
    view: { extend: (methods) => methods },
    form: new Proxy({ Map: FormMap }, { get: (all, name) => all[name] ?? name }),
    fs: {
        exec: (program, list) => {
            commands.push([program, ...list].join(" "));
            return Promise.resolve({ code: output === "null" ? 1 : 0, stdout: output });
        },
    },
    poll,
    dom: { content: (node, children) => (node.children = [children]) },
    widgets: new Proxy({}, { get: (_, name) => name }),
};
const required = [...source.matchAll(/^'require (\S+)(?: as (\S+))?';$/gm)].map((found) => found[2] ?? found[1]);
const view = new Function(...required, "E", "_", source)(...required.map((name) => modules[name]), E, (it) => it);
view.load()
    .then((state) => view.render(state))
    .then(async (page) => {
        const first = text(page);
        await poll.what();
        console.log(JSON.stringify({ text: first, again: text(page), seconds: poll.seconds, commands, shown }));
    });
