'use strict';
'require view';
'require form';
'require fs';
'require poll';
'require dom';
'require tools.widgets as widgets';

/* State and configuration of the airtcp gateway. What the options mean: docs/gateway-config.md. */

const MECHANISMS = [ 'wake', 'holdover', 'm-tcp-plus', 'm-tcp', 'packet-control' ];
const UPLINK_MECHANISMS = MECHANISMS.slice(0, 3);

/* The gateway's state; null if it does not run. */
function readStatus() {
	return fs.exec('/usr/bin/airtcp', [ 'gateway', 'status', '--json' ])
		.then(result => result.code === 0 ? JSON.parse(result.stdout) : null)
		.catch(() => null);
}

function seconds(value) {
	return value < 100 ? '%.1f s'.format(value) : '%d min'.format(Math.round(value / 60));
}

function table(heads, rows) {
	return E('table', { 'class': 'table' }, [
		E('tr', { 'class': 'tr table-titles' }, heads.map(head => E('th', { 'class': 'th' }, head))),
		...rows.map(row => E('tr', { 'class': 'tr' }, row.map(cell => E('td', { 'class': 'td' }, String(cell)))))
	]);
}

/* What a gateway that protects does. */
function protection(status) {
	const groups = status.groups.map(group => {
		const outages = Object.values(group.outages);
		const sum = of => outages.reduce((total, one) => total + one[of], 0);
		return [ group.name, group.mechanism, group.flows, sum('begun'), sum('ongoing'),
			seconds(sum('seconds')), seconds(group.longest_outage) ];
	});
	const away = status.outages.map(outage => [ outage.mobile, outage.group, outage.cause, seconds(outage.seconds) ]);

	return [
		table([ _('Group'), _('Mechanism'), _('Connections'), _('Outages'), _('Out of reach now'), _('Total time'),
			_('Longest') ], groups),
		away.length ? table([ _('Out of reach'), _('Group'), _('Reported by'), _('For') ], away) : ''
	];
}

/* What a gateway that observes would have saved. */
function report(observed) {
	const rows = observed.groups.flatMap(group => [ 'tcp', 'quic' ].map(name => {
		const seen = group[name], least = seconds(seen.saved_least), most = seconds(seen.saved_most);
		return [ group.name, name.toUpperCase(), seen.flows, group.outages_signalled + group.outages_silent,
			seen.stalled, seen.resumed, least === most ? most : _('%s to %s').format(least, most) ];
	}));

	return [
		E('p', _('Observed for %s. No packet was held, changed or sent.').format(seconds(observed.seconds))),
		table([ _('Group'), _('Protocol'), _('Flows'), _('Outages'), _('Stalled'), _('Resumed'),
			_('Would have been saved') ], rows)
	];
}

function state(status) {
	if (status === null)
		return E('p', E('em', _('The gateway does not run. The system log says why, if it is enabled.')));
	const missed = status.counters.mirror_missed_packets;

	return E('div', [
		...(status.report ? report(status.report) : protection(status)),
		missed ? E('p', _('%d packets were forwarded but not seen: the gateway was too slow.').format(missed)) : ''
	]);
}

function choices(option, words) {
	option.optional = true;
	words.forEach(word => option.value(word));
}

function mechanismOptions(section, words) {
	const mechanism = section.option(form.ListValue, 'mechanism', _('Mechanism'),
		_('<em>wake</em> is the default: nothing is held back or acknowledged early.'));
	choices(mechanism, words);
	const fifo = section.option(form.Value, 'fifo', _('Copies for a connection'));
	fifo.placeholder = '4 MiB';
	fifo.modalonly = true;
	fifo.depends('mechanism', 'm-tcp-plus');
	fifo.depends('mechanism', 'holdover');
}

return view.extend({
	load() {
		return readStatus();
	},

	render(status) {
		const map = new form.Map('airtcp', _('airtcp gateway'),
			_('After an outage of a wireless link, connections resume at once instead of waiting for the sender’s timer.'));

		let section = map.section(form.NamedSection, 'gateway', 'gateway', _('Gateway'));
		let option = section.option(form.Flag, 'enabled', _('Enable'));
		option.rmempty = false;
		option = section.option(form.ListValue, 'mode', _('Mode'),
			_('<em>observe</em> changes no packet and counts what <em>protect</em> would save.'));
		choices(option, [ 'protect', 'observe' ]);
		option = section.option(form.ListValue, 'data_path', _('Data path'),
			_('<em>tc</em> also sees what software flow offloading forwards; nothing sees what hardware forwards.'));
		choices(option, [ 'auto', 'netfilter', 'tc' ]);

		section = map.section(form.GridSection, 'mobile', _('Mobiles'), _('Hosts behind a wireless link of this router.'));
		section.addremove = true;
		section.sortable = true;
		option = section.option(form.DynamicList, 'addresses', _('Addresses'), _('IP addresses or prefixes, before any translation.'));
		option.datatype = 'or(ipaddr, cidr)';
		option.rmempty = false;
		option = section.option(widgets.DeviceSelect, 'interfaces', _('Interfaces'));
		option.multiple = true;
		option.optional = true;
		mechanismOptions(section, MECHANISMS);
		option = section.option(form.Value, 'threshold', _('Duplicate ACKs that stand for a loss'));
		option.datatype = 'range(3, 1000000)';
		option.modalonly = true;
		option.depends('mechanism', 'packet-control');

		section = map.section(form.GridSection, 'uplink', _('Uplinks'),
			_('Wireless links by which this router itself reaches the network.'));
		section.addremove = true;
		option = section.option(widgets.DeviceSelect, 'interface', _('Interface'));
		option.rmempty = false;
		mechanismOptions(section, UPLINK_MECHANISMS);

		section = map.section(form.TypedSection, 'signals', _('Link signals'),
			_('Who says when a mobile is out of reach. <em>wake</em> needs none.'));
		section.addremove = true;
		section.anonymous = true;
		option = section.option(form.Flag, 'carrier', _('Carrier'), _('An interface without carrier: its mobiles are out of reach.'));
		option = section.option(form.Flag, 'neighbour', _('Neighbour table'));
		option = section.option(form.Value, 'silence', _('Silence'), _('A mobile that owes an answer for this long is out of reach, such as <code>1 s</code>.'));

		return map.render().then(node => {
			const current = E('div', { 'class': 'cbi-section' }, state(status));
			poll.add(() => readStatus().then(status => dom.content(current, state(status))), 5);
			return E('div', [ node.firstChild, current, node ]);
		});
	}
});
