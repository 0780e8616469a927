"""Finite volumes for the Euler equations on a periodic square, with classes of fluxes in functions."""

import numpy as np


def conserved(rho, vx, vy, P, gamma, vol):
    Mass = rho * vol
    Momx = rho * vx * vol
    Momy = rho * vy * vol
    Energy = (P / (gamma - 1) + 0.5 * rho * (vx**2 + vy**2)) * vol
    return Mass, Momx, Momy, Energy


def primitive(Mass, Momx, Momy, Energy, gamma, vol):
    rho = Mass / vol
    vx = Momx / rho / vol
    vy = Momy / rho / vol
    P = (Energy / vol - 0.5 * rho * (vx**2 + vy**2)) * (gamma - 1)
    return rho, vx, vy, P


def gradients(f, dx):
    R, L = -1, 1
    f_dx = (np.roll(f, R, axis=0) - np.roll(f, L, axis=0)) / (2 * dx)
    f_dy = (np.roll(f, R, axis=1) - np.roll(f, L, axis=1)) / (2 * dx)
    return f_dx, f_dy


def flux(rho_L, rho_R, v_L, v_R, P_L, P_R, gamma):
    en_L = P_L / (gamma - 1) + 0.5 * rho_L * v_L**2
    en_R = P_R / (gamma - 1) + 0.5 * rho_R * v_R**2
    momentum = 0.5 * (rho_L * v_L + rho_R * v_R)
    C = np.maximum(np.sqrt(gamma * P_L / rho_L) + np.abs(v_L), np.sqrt(gamma * P_R / rho_R) + np.abs(v_R))
    mass = momentum - C * 0.5 * (rho_L - rho_R)
    energy = 0.5 * (en_L + en_R) * 0.5 * (v_L + v_R) - C * 0.5 * (en_L - en_R)
    return mass, energy


def run(gamma, n=12, steps=6):
    dx = 1.0 / n
    vol = dx**2
    xlin = np.linspace(0.5 * dx, 1 - 0.5 * dx, n)
    Y, X = np.meshgrid(xlin, xlin)
    w0 = 0.1
    rho = 1.0 + (np.abs(Y - 0.5) < 0.25)
    vx = -0.5 + (np.abs(Y - 0.5) < 0.25)
    vy = w0 * np.sin(4 * np.pi * X)
    P = 2.5 * np.ones(X.shape)
    P[3, 4] = 2.5 + 0.1 * gamma
    Mass, Momx, Momy, Energy = conserved(rho, vx, vy, P, gamma, vol)
    for _ in range(steps):
        rho, vx, vy, P = primitive(Mass, Momx, Momy, Energy, gamma, vol)
        dt = 0.2 * np.min(dx / (np.sqrt(gamma * P / rho) + np.sqrt(vx**2 + vy**2)))
        drho_dx, _drho_dy = gradients(rho, dx)
        mass, energy = flux(rho, np.roll(rho, -1, 0), vx, np.roll(vx, -1, 0), P, np.roll(P, -1, 0), gamma)
        Mass += -dt * dx * mass + dt * dx * np.roll(mass, 1, axis=0)
        Energy += -dt * dx * energy + dt * dx * np.roll(energy, 1, axis=0)
        Momx -= dt * vol * drho_dx * 0.1
    return float(np.sum(Mass**2)) + np.sum(Energy * X)
